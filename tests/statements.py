"""Every statement of this process, on whichever thread's connection it runs.

Django's own counter sees one connection; a turn uses several threads, each with its own.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "SET ")
_WRITES = ("INSERT", "UPDATE", "DELETE")
_FLUSH = ("run.added", "SKIP LOCKED")
"""What only the log's group flush says."""


@dataclass(frozen=True)
class Statement:
    sql: str
    params: Any
    vendor: str
    transaction: int
    """Equal for the statements of one transaction; a statement in autocommit has its own."""

    @property
    def writes(self) -> bool:
        return self.sql.startswith(_WRITES)


@dataclass
class Statements:
    """What ran, in order. Transaction control does not count as statements."""

    found: list[Statement] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if not sql.startswith(_CONTROL):
            connection = context["connection"]
            number = self._transaction(connection)
            self.found.append(Statement(sql, params, connection.vendor, number))
        return execute(sql, params, many, context)

    def _transaction(self, connection: BaseDatabaseWrapper) -> int:
        """The number of the connection's transaction, kept where Django forgets it at its end."""
        if not connection.in_atomic_block:
            return next(self._numbers)
        for _, mark, _ in connection.run_on_commit:
            if isinstance(mark, _Mark):
                return mark.number
        mark = _Mark(next(self._numbers))
        connection.on_commit(mark)
        return mark.number

    @property
    def flushes(self) -> list[Statement]:
        """Those of the log's group flush."""
        numbers = {one.transaction for one in self.found if any(word in one.sql for word in _FLUSH)}
        return [one for one in self.found if one.transaction in numbers]

    @property
    def others(self) -> list[Statement]:
        """Those beside the log's group flush."""
        flushes = {one.transaction for one in self.flushes}
        return [one for one in self.found if one.transaction not in flushes]

    @property
    def write_transactions(self) -> int:
        """How many transactions, beside flushes, wrote something."""
        return len({one.transaction for one in self.others if one.writes})


@dataclass(frozen=True)
class _Mark:
    number: int

    def __call__(self) -> None:
        return


def every_connection() -> list[BaseDatabaseWrapper]:
    """Django's connections of all threads; they are thread-local, so only the heap knows them.

    By their true type: `isinstance` would wake lazy objects, such as a request's user.
    """
    return [one for one in gc.get_objects() if issubclass(type(one), BaseDatabaseWrapper)]


@contextmanager
def every_statement() -> Iterator[Statements]:
    """Records what runs inside the block on every connection, also those that open meanwhile."""
    statements = Statements()
    connections = every_connection()
    for connection in connections:
        connection.execute_wrappers.append(statements)

    def opened(connection: BaseDatabaseWrapper, **_: object) -> None:
        if statements not in connection.execute_wrappers:
            connection.execute_wrappers.append(statements)
            connections.append(connection)

    connection_created.connect(opened)
    try:
        yield statements
    finally:
        connection_created.disconnect(opened)
        for connection in connections:
            connection.execute_wrappers.remove(statements)


@contextmanager
def steps_of_sqlite() -> Iterator[list[None]]:
    """Gets an entry for every ten steps of SQLite's machine, also on connections that open now."""
    steps: list[None] = []
    counted: list[Any] = []

    def watch(connection: BaseDatabaseWrapper, **_: object) -> None:
        counted.append(connection.connection)
        connection.connection.set_progress_handler(lambda: steps.append(None), 10)

    connection_created.connect(watch)
    for one in every_connection():
        if one.connection is not None:
            watch(one)
    try:
        yield steps
    finally:
        connection_created.disconnect(watch)
        for connection in counted:
            connection.set_progress_handler(None, 0)


def sqlite_plan(connection: BaseDatabaseWrapper, statement: Statement) -> list[str]:
    """How SQLite carries the statement out, a line for each table or subquery it reads."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.params)
        return [row[3] for row in cursor.fetchall()]


def postgres_plan(connection: BaseDatabaseWrapper, statement: Statement) -> list[str]:
    """How PostgreSQL would carry the statement out on tables too large to be read as a whole."""
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        try:
            cursor.execute(f"EXPLAIN {statement.sql}", statement.params)
            return [row[0] for row in cursor.fetchall()]
        finally:
            cursor.execute("RESET enable_seqscan")
