"""Connections that wait for SQLite's lock by themselves, never within SQLite.

SQLite's busy handler waits with the connection's mutex held. A cursor of that connection which the
garbage collector finds meanwhile, on whatever thread, waits for the mutex: the event loop, if it is
the loop's thread, and with it everybody would stand still for as long. So SQLite is told not to
wait, and whoever finds the file locked sleeps and asks again.

It sleeps on the thread that called. That is never an event loop's: Django refuses it a cursor.
"""

import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

from django.db.backends.sqlite3 import base

R = TypeVar("R")

logger = logging.getLogger(__name__)

_PAUSE_S: Final = (0.001, 0.01)
"""Between two tries, at first and at most. Short and uneven, so that no waiter starves."""
_TELL_S: Final = 5


class PatientConnection(sqlite3.Connection):
    """Waits up to `timeout` seconds for a lock, then raises OperationalError as sqlite3 does."""

    def __init__(self, database: Any, timeout: float = 5, **kwargs: Any) -> None:
        super().__init__(database, timeout=0, **kwargs)
        self.patience_s = timeout

    def patiently(self, call: Callable[..., R], /, *args: Any) -> R:
        """The result of `call`, which is one statement, as soon as the lock lets it run."""
        began: float | None = None
        told = False
        while True:
            try:
                return call(*args)
            except sqlite3.OperationalError as exc:
                now = time.monotonic()
                began = now if began is None else began
                waited = now - began
                if waited >= self.patience_s or not self._may_succeed_later(exc):
                    raise
            if waited > _TELL_S and not told:
                told = True
                logger.warning("Waiting for the SQLite lock")
            first, most = _PAUSE_S
            time.sleep(random.uniform(0.5, 1) * min(first + waited, most))

    def _may_succeed_later(self, exc: sqlite3.OperationalError) -> bool:
        code = getattr(exc, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_BUSY_SNAPSHOT and self.in_transaction:
            return False  # what this transaction read is over: it can only begin anew
        return code & 0xFF == sqlite3.SQLITE_BUSY

    def execute(self, *args: Any) -> sqlite3.Cursor:
        return self.patiently(super().execute, *args)

    def commit(self) -> None:
        self.patiently(super().commit)


class PatientCursor(base.SQLiteCursorWrapper):
    """A cursor of a PatientConnection."""

    connection: PatientConnection

    def execute(self, query: str, params: Any = None) -> Self:
        self.connection.patiently(super().execute, query, params)
        return self

    def executemany(self, query: str, param_list: Iterable[Any]) -> Self:
        """In one transaction, its own if none is open: a second try would write some rows twice."""
        if self.connection.in_transaction:
            super().executemany(query, param_list)
            return self
        self.execute("BEGIN IMMEDIATE")
        with self.connection:
            super().executemany(query, param_list)
        return self


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection to SQLite; `timeout` of its OPTIONS is how long it waits for locks."""

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "factory": PatientConnection}

    def get_new_connection(self, conn_params: dict[str, Any]) -> PatientConnection:
        """As Django's; a new file is its owner's alone, and so are the files that SQLite adds."""
        name = str(conn_params["database"])
        if not name.startswith((":memory:", "file:")):
            with suppress(OSError):  # it is there; or it cannot be, which SQLite says better
                os.close(os.open(name, os.O_CREAT | os.O_EXCL, 0o600))
        made: PatientConnection = super().get_new_connection(conn_params)
        return made

    def create_cursor(self, name: str | None = None) -> PatientCursor:
        cursor: PatientCursor = self.connection.cursor(factory=PatientCursor)
        return cursor
