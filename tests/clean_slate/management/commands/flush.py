"""Django's `flush`, which ends each test with transactions of its own, without its waits.

The first one of a test run is Django's: it empties every table and has the first rows made anew.
Those are remembered; from then on only tables that differ are written.
"""

from typing import Any, Final

from django.core.management.commands import flush
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from sessions_app import clock

Rows = list[tuple[Any, ...]]
_first_rows: Final[dict[str, dict[str, Rows]]] = {}
"""The rows of each table of a database, by its name."""


class Command(flush.Command):
    def handle(self, **options: Any) -> None:
        connection = connections[options["database"]]
        name = str(connection.settings_dict["NAME"])
        if name in _first_rows:
            _restore(connection, _first_rows[name])
        else:
            super().handle(**options)
            _first_rows[name] = _read(connection)


def _read(connection: BaseDatabaseWrapper) -> dict[str, Rows]:
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with connection.cursor() as cursor:
        return {table: _rows(cursor, table) for table in sorted(tables)}


def _rows(cursor: CursorWrapper, table: str) -> Rows:
    cursor.execute(f'SELECT * FROM "{table}" ORDER BY 1')
    return list(cursor.fetchall())


def _restore(connection: BaseDatabaseWrapper, first: dict[str, Rows]) -> None:
    """Every table holds its first rows; foreign keys are checked at the end, so any order does."""
    using = connection.alias
    with transaction.atomic(using=using), connection.cursor() as cursor:
        clock.install(connection)
        changed = [*_filled(cursor, first), *_differing(cursor, first)]
        for table in changed:
            cursor.execute(f'DELETE FROM "{table}"')
        for table in changed:
            for row in first[table]:
                marks = ", ".join(["%s"] * len(row))
                cursor.execute(f'INSERT INTO "{table}" VALUES ({marks})', row)


def _filled(cursor: CursorWrapper, first: dict[str, Rows]) -> list[str]:
    """Tables that were empty and are not."""
    asked = (
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")"
        for table, rows in first.items()
        if not rows
    )
    cursor.execute(" UNION ALL ".join(asked))
    return [table for (table,) in cursor.fetchall()]


def _differing(cursor: CursorWrapper, first: dict[str, Rows]) -> list[str]:
    return [table for table, rows in first.items() if rows and _rows(cursor, table) != rows]
