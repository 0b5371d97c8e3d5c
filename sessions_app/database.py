"""Which connection a thread uses, and the few places where the two databases' SQL differs."""

import threading
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.dateparse import parse_datetime

_thread = threading.local()

AWAY: Final = (OperationalError, InterfaceError)
"""The database itself is the trouble: out of reach, locked, full. Others blame what was written."""


def own_thread(alias: str) -> None:
    """From now on this thread uses `alias`, by the connection it has for it now, until its end.

    A look-up of Django's takes a microsecond, and a turn makes a hundred. Reads through the ORM
    go by `ReaderRouter`.
    """
    _thread.alias = alias
    _thread.connection = connections[alias]


def alias() -> str:
    """The alias of the current thread: `default` unless it is a reader thread."""
    return getattr(_thread, "alias", "default")


def connection() -> BaseDatabaseWrapper:
    found: BaseDatabaseWrapper | None = getattr(_thread, "connection", None)
    return connections[alias()] if found is None else found


class ReaderRouter:
    """Sends the ORM's reads of a reader thread to the reader's alias."""

    def db_for_read(self, *_: object, **__: object) -> str | None:
        name = alias()
        return None if name == "default" else name

    def allow_relation(self, *_: object, **__: object) -> bool:
        return True

    def allow_migrate(self, db: str, *_: object, **__: object) -> bool | None:
        return False if db == "reader" else None


@cache
def is_sqlite() -> bool:
    """Which database it is does not change while a process lives."""
    return connections["default"].vendor == "sqlite"


def db_uuid(value: uuid.UUID) -> Any:
    """`value` as a parameter of raw SQL: SQLite keeps 32 hex digits, PostgreSQL a uuid."""
    return value.hex if is_sqlite() else value


def to_uuid(value: Any) -> uuid.UUID:
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


def db_time(value: datetime) -> Any:
    """`value` (aware) as a parameter of raw SQL, in the form Django's fields use."""
    if not is_sqlite():
        return value
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def to_time(value: Any) -> datetime | None:
    """A raw column of a DateTimeField as an aware datetime; None stays None."""
    if value is None or isinstance(value, datetime):
        return value
    parsed = parse_datetime(value)
    return parsed.replace(tzinfo=UTC) if parsed else None


def now_sql(*, plus_s: float = 0) -> str:
    """SQL of the database's own clock, `plus_s` seconds from now."""
    if is_sqlite():
        # doubled: Django's cursor treats a single percent sign as the start of a parameter
        return f"strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '{plus_s:+.3f} seconds')"
    return f"(statement_timestamp() + interval '{plus_s:.3f} seconds')"


def lock_sql() -> str:
    """Row lock of a SELECT. FOR UPDATE would block foreign-key checks of other tables."""
    return "" if is_sqlite() else " FOR NO KEY UPDATE"


def rows(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Every row of one statement on the current thread's connection."""
    with connection().cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def execute(sql: str, params: Sequence[Any] = ()) -> int:
    """Runs one statement; how many rows it touched."""
    with connection().cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)
