"""A database that refuses some rows: a trigger of the test's own, on both databases."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, models

FULL, INVALID = "full", "invalid"


def _on_sqlite(table: str, when: str, why: str) -> list[str]:
    # a table that is not there is an OperationalError, as a full disk is
    does = "SELECT * FROM room" if why == FULL else "SELECT RAISE(ABORT, 'refused by a test')"
    return [f"CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} WHEN {when} BEGIN {does}; END"]


def _on_postgres(table: str, when: str, why: str) -> list[str]:
    code = "disk_full" if why == FULL else "check_violation"
    return [
        f"CREATE OR REPLACE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN RAISE EXCEPTION 'refused by a test' USING ERRCODE = '{code}'; END $$",
        f"CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} FOR EACH ROW WHEN ({when})"
        f" EXECUTE FUNCTION refuse_{table}()",
    ]


def refuse(model: type[models.Model], *, why: str = FULL, when: str = "1 = 1") -> None:
    """From now on no row that is `when` gets into the model's table."""
    make = _on_sqlite if connection.vendor == "sqlite" else _on_postgres
    with connection.cursor() as cursor:
        for statement in make(model._meta.db_table, when, why):
            cursor.execute(statement)


def accept(model: type[models.Model]) -> None:
    """Rows get in again."""
    table = model._meta.db_table
    tail = "" if connection.vendor == "sqlite" else f" ON {table}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER IF EXISTS refuse_{table}{tail}")


@contextmanager
def accepting_again(*tables: type[models.Model]) -> Iterator[None]:
    """Whatever was refused within is accepted after it."""
    try:
        yield
    finally:
        for model in tables:
            accept(model)
