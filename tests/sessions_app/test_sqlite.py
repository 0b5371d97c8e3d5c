"""The database backend for SQLite: it waits for locks, and nobody waits for its waiting."""

import gc
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler

from hermes_site.environment import WAL_REST_BYTES, sqlite_databases
from tests.sqlite_lock import Rings, held_elsewhere

INSERT = "INSERT INTO note (word) VALUES (%s)"


@pytest.fixture
def file(tmp_path: Path, django_db_blocker: Any) -> Iterator[Path]:
    """A database of its own, not yet with a write-ahead log."""
    path = tmp_path / "own.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE note (word TEXT UNIQUE)")
    with django_db_blocker.unblock():
        yield path


def handler_of(file: Path, **options: object) -> ConnectionHandler:
    databases: dict[str, Any] = sqlite_databases(str(file))
    databases["default"]["OPTIONS"] |= options
    return ConnectionHandler(databases)


@pytest.fixture
def handler(file: Path) -> Iterator[ConnectionHandler]:
    made = handler_of(file)
    made["default"].ensure_connection()
    yield made
    made.close_all()


def words(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as database:
        return [word for (word,) in database.execute("SELECT word FROM note ORDER BY word")]


def begin(connection: BaseDatabaseWrapper) -> None:
    """What `transaction.atomic` does."""
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    connection.cursor().execute(INSERT, ["late"])
    connection.commit()


def execute(connection: BaseDatabaseWrapper) -> None:
    connection.cursor().execute(INSERT, ["late"])


def executemany(connection: BaseDatabaseWrapper) -> None:
    connection.cursor().executemany(INSERT, [["late"]])


def pragma(connection: BaseDatabaseWrapper) -> None:
    connection.cursor().execute("PRAGMA user_version = 7")
    connection.cursor().execute(INSERT, ["late"])


@contextmanager
def waiting(
    work: Callable[[BaseDatabaseWrapper], None], connect: Callable[[], BaseDatabaseWrapper]
) -> Iterator[tuple[Rings, "Future[None]"]]:
    """A thread whose connection waits for the lock in the midst of `work`."""
    rings, asked = Rings(), threading.Event()

    def run() -> None:
        connection = connect()
        rings.make(connection, lambda _: asked.set())
        try:
            work(connection)
        finally:
            connection.close()

    gc.disable()
    try:
        with ThreadPoolExecutor(1) as pool:
            end = pool.submit(run)
            assert asked.wait(60)
            yield rings, end
    finally:
        gc.enable()


@pytest.mark.parametrize("work", [begin, execute, executemany, pragma])
def test_it_lets_others_collect_its_cursors_while_it_waits(
    file: Path, handler: ConnectionHandler, work: Callable[[BaseDatabaseWrapper], None]
) -> None:
    with (
        held_elsewhere(file) as release,
        waiting(work, lambda: handler["default"]) as (rings, end),
    ):
        rings.collect()
        assert not end.done()
        release()
        end.result(60)
    assert words(file) == ["late"]


def test_it_waits_for_those_who_read_where_a_commit_must(file: Path) -> None:
    """Without a write-ahead log they stand in its way."""
    handler = handler_of(file, init_command="")
    with (
        held_elsewhere(file, "BEGIN", "SELECT count(*) FROM note") as release,
        waiting(begin, lambda: handler["default"]) as (rings, end),
    ):
        rings.collect()
        assert not end.done()
        release()
        end.result(60)
    assert words(file) == ["late"]


@pytest.mark.parametrize("alias", ["default", "reader"])
def test_it_waits_to_open_a_file_that_another_program_has_for_itself(
    file: Path, alias: str
) -> None:
    statement = "SELECT word FROM note"
    with (
        held_elsewhere(file, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE") as release,
        ThreadPoolExecutor(1) as pool,
    ):
        begun = threading.Event()

        def read() -> list[tuple[str]]:
            connection = handler_of(file)[alias]
            begun.set()
            with closing(connection), connection.cursor() as cursor:
                return list(cursor.execute(statement).fetchall())

        end = pool.submit(read)
        assert begun.wait(60)
        release()
        assert end.result(60) == []


def test_it_makes_files_that_are_their_owners_alone(tmp_path: Path, django_db_blocker: Any) -> None:
    """Conversations, sessions and password hashes are in them; the umask lets others read."""
    made, before = handler_of(tmp_path / "new.sqlite3"), os.umask(0o022)
    try:
        with django_db_blocker.unblock(), closing(made["default"]) as connection:
            connection.cursor().execute("CREATE TABLE note (word TEXT)")
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("new.sqlite3", "new.sqlite3-wal", "new.sqlite3-shm"), 0o600)


def test_it_gives_up_after_its_timeout_as_sqlite_does(file: Path) -> None:
    connection = handler_of(file, timeout=0.05)["default"]
    connection.ensure_connection()
    with (
        closing(connection),
        held_elsewhere(file),
        pytest.raises(OperationalError, match="database is locked"),
    ):
        execute(connection)


def test_it_does_not_try_again_what_can_only_begin_anew(
    file: Path, handler: ConnectionHandler
) -> None:
    connection, tries = handler["default"], list[str]()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT word FROM note").fetchall()
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("INSERT INTO note (word) VALUES ('theirs')")
        connection.connection.set_trace_callback(tries.append)
        with pytest.raises(OperationalError, match="database is locked"):
            cursor.execute(INSERT, ["ours"])
        connection.connection.set_trace_callback(None)
        assert len(tries) == 1
        cursor.execute("ROLLBACK")
        cursor.execute(INSERT, ["ours"])
    assert words(file) == ["ours", "theirs"]


def test_it_writes_many_rows_or_none(file: Path, handler: ConnectionHandler) -> None:
    with pytest.raises(IntegrityError), handler["default"].cursor() as cursor:
        cursor.executemany(INSERT, [["one"], ["two"], ["one"]])
    assert words(file) == []


def test_it_gives_back_what_its_log_took_while_somebody_read(
    handler: ConnectionHandler, file: Path
) -> None:
    """Case E2: the next write after the last reader cuts the write-ahead log."""
    writer, log = handler["default"].cursor(), file.with_name(f"{file.name}-wal")
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM note").fetchone()
        for letter in "abc":
            writer.execute(INSERT, [letter * 12 * 1024 * 1024])
        assert log.stat().st_size > WAL_REST_BYTES
    writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
    writer.execute(INSERT, ["one more"])
    assert log.stat().st_size <= WAL_REST_BYTES
