"""SQLite's lock in the hands of another program, and what makes a wait for it dangerous."""

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper

_HOLD: Final = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
for statement in sys.argv[2:]:
    database.execute(statement).fetchone()
print("held", flush=True)
sys.stdin.readline()
database.execute("ROLLBACK")
database.close()
"""


@contextmanager
def held_elsewhere(file: object, *statements: str) -> Iterator[Callable[[], None]]:
    """Another process is in the midst of a transaction, until what this yields is called."""
    command = [sys.executable, "-c", _HOLD, str(file), *(statements or ["BEGIN IMMEDIATE"])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def release() -> None:
            holder.communicate("\n", timeout=60)

        try:
            yield release
        finally:
            if holder.poll() is None:
                release()


class Rings:
    """Cursors that only the garbage collector finds, each in the midst of its rows."""

    def __init__(self) -> None:
        self._rings: list[list[object]] = []

    def make(self, connection: BaseDatabaseWrapper, asked: Callable[[Any], object]) -> None:
        """On the thread of `connection`, which calls `asked` with each statement it begins."""
        for _ in range(5):
            cursor = connection.cursor()
            cursor.execute("SELECT 1 UNION ALL SELECT 2")
            self._rings.append([cursor])
            self._rings[-1].append(self._rings[-1])
        connection.connection.set_trace_callback(asked)

    def collect(self) -> None:
        """They are gone, by the current thread."""
        self._rings.clear()
        gc.collect()
