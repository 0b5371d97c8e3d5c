"""Who may change the schema while who serves.

SQLite: `serve` holds a shared lock on a file beside the database, a migration an exclusive one.
PostgreSQL: migrations queue behind an advisory lock; a server beside them reads the schema it
knows, because its rows and triggers are replaced and never dropped.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from django.db.backends.base.base import BaseDatabaseWrapper

ADVISORY_KEY: Final = 0x6865726D6573
"""`hermes` in ASCII; session-level, held by whoever migrates."""


class DatabaseInUse(Exception):
    """Somebody else holds the lock; says who that can be."""


def lock_path(connection: BaseDatabaseWrapper) -> Path | None:
    """The lock file of a SQLite file; None for a database in memory."""
    name = str(connection.settings_dict["NAME"])
    if name == ":memory:" or name.startswith("file:"):
        return None
    return Path(f"{name}.lock")


@contextmanager
def starting(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Servers that may migrate before they serve come one after another on a SQLite file."""
    path = lock_path(connection) if connection.vendor == "sqlite" else None
    if path is None:
        yield
        return
    with path.with_suffix(".starting").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class ServingLock:
    """Held while this process serves; leaving the block, or the process's end, releases it."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.path = lock_path(connection) if connection.vendor == "sqlite" else None
        self.file: IO[str] | None = None

    def __enter__(self) -> "ServingLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Waits until no migration runs on this database; then none can start."""
        if self.path is not None and self.file is None:
            self.file = self.path.open("a")
            fcntl.flock(self.file, fcntl.LOCK_SH)

    def release(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


@contextmanager
def only_server(connection: BaseDatabaseWrapper, *, wakes_others: bool) -> Iterator[None]:
    """One group of workers serves a SQLite file, unless all who do can wake each other.

    The lock lives in the process that holds it: a crash leaves nothing behind. Raises DatabaseInUse
    at once.
    """
    path = lock_path(connection) if connection.vendor == "sqlite" else None
    if path is None:
        yield
        return
    with path.with_suffix(".serving").open("a") as file:
        kind = fcntl.LOCK_SH if wakes_others else fcntl.LOCK_EX
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise DatabaseInUse(
                f"Another `manage.py serve` already serves {connection.settings_dict['NAME']}. Stop"
                " it first, or set the same REDIS_URL for both: without Redis they cannot tell each"
                " other what is new."
            ) from exc
        yield


@contextmanager
def migrating(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Nobody serves from this SQLite file, and no other migration runs on this database.

    Raises DatabaseInUse at once on SQLite; waits its turn on PostgreSQL.
    """
    if connection.vendor == "sqlite":
        with _exclusive_file(lock_path(connection)):
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_KEY])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_KEY])


@contextmanager
def _exclusive_file(path: Path | None) -> Iterator[None]:
    if path is None:
        yield
        return
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise DatabaseInUse(
                "This database is being served or migrated by another process. "
                "Stop `manage.py serve` first, then migrate."
            ) from exc
        yield
