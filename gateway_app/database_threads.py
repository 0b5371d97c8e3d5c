"""The one place where async code crosses to the database.

SQLite: one writer thread with a queue (its file has one writer anyway, and whoever waits for the
lock has no turn) and a few readers on the query-only alias. PostgreSQL: a bounded pool that does
both, with as many connections as its jobs need. A finished job wakes the event loop once, together
with all others that finished meanwhile. Cancelling an awaited job does not stop it: it commits.
"""

import asyncio
import functools
import logging
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
)

from gateway_app.connected_jobs import ConnectedJobs, Job
from sessions_app import database as db

R = TypeVar("R")

logger = logging.getLogger(__name__)

_WRITER_PATIENCE_S: Final = 60
"""For SQLite's lock, whoever holds it. Nobody looks at an empty page meanwhile, as with a view."""
_EMPTY_WAL_S: Final = 3600
_PAUSE_S: Final = 0.2
_Queue = SimpleQueue[Job | None]


class DatabaseLanes:
    """Threads that run sync database code for one event loop. `start()` first, `close()` last."""

    def __init__(self, *, readers: int, postgres: int, idle_s: float = 5) -> None:
        """`idle_s`: PostgreSQL's connections that nobody needs are let go of after it."""
        self._sqlite = db.is_sqlite()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pooled, self._idle_s = ConnectedJobs(), idle_s
        self._writes: _Queue | ConnectedJobs = SimpleQueue() if self._sqlite else self._pooled
        self._reads: _Queue | ConnectedJobs = SimpleQueue() if self._sqlite else self._pooled
        self._done: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._woken = False
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._readers = readers
        self._postgres = postgres
        self._closing = threading.Event()
        self._writing_since: float | None = None
        self._served: list[_Queue] = []

    def start(self, *, checkpoint: bool = False) -> None:
        """Starts the threads, for the running loop. `checkpoint`: keep SQLite's WAL short."""
        self._loop = asyncio.get_running_loop()
        self._closing.clear()
        if isinstance(self._writes, ConnectedJobs) or isinstance(self._reads, ConnectedJobs):
            self._pooled.open()
            for number in range(self._postgres):
                self._spawn(f"hermes-db-{number}", self._serve_connected)
            return
        self._serve_queue("hermes-writer", self._writes, checkpointed=checkpoint)
        for number in range(self._readers):
            self._serve_queue(f"hermes-reader-{number}", self._reads, alias="reader")
        if checkpoint:
            self._spawn("hermes-checkpoint", self._checkpoint)

    def write(self, call: Callable[..., R], /, *args: Any, **kwargs: Any) -> "asyncio.Future[R]":
        """Runs `call` where writes run. Writes of one loop run in the order they were given."""
        return self._submit(self._writes, call, args, kwargs)

    def read(self, call: Callable[..., R], /, *args: Any, **kwargs: Any) -> "asyncio.Future[R]":
        """Runs `call` where reads run."""
        return self._submit(self._reads, call, args, kwargs)

    def waiting(self) -> dict[str, int]:
        """How many jobs wait for a thread, by lane."""
        lanes = {"write": self._writes}
        if self._reads is not self._writes:
            lanes["read"] = self._reads
        return {name: queue.qsize() for name, queue in lanes.items()}

    def write_waits_s(self) -> float:
        """How long SQLite's writer is at what it does now. Long is: others hold the lock."""
        since = self._writing_since
        return 0 if since is None else time.monotonic() - since

    def close(self) -> None:
        """Ends the threads after the jobs that were given; closes their connections."""
        self._closing.set()
        self._pooled.close()
        for queue in self._served:
            queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._served.clear()

    def _serve_queue(
        self,
        name: str,
        queue: _Queue,
        *,
        alias: str = "default",
        checkpointed: bool = False,
    ) -> None:
        self._served.append(queue)
        self._spawn(name, self._serve, queue, alias, checkpointed)

    def _spawn(self, name: str, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _submit(
        self, queue: _Queue | ConnectedJobs, call: Callable[..., R], args: Any, kwargs: Any
    ) -> "asyncio.Future[R]":
        assert self._loop is not None, "start() first"
        future: asyncio.Future[R] = self._loop.create_future()
        queue.put((functools.partial(call, *args, **kwargs), future))
        return future

    def _serve(self, queue: _Queue, alias: str, checkpointed: bool) -> None:
        db.own_thread(alias)
        writes = alias == "default"
        if writes:
            connection.ensure_connection()
            connection.connection.patience_s = _WRITER_PATIENCE_S
            if checkpointed:
                db.execute("PRAGMA wal_autocheckpoint=0")
        attempt = self._attempt_write if writes else self._attempt
        try:
            while (job := queue.get()) is not None:
                self._do(job, attempt)
                del job
        finally:
            db.connection().close()

    def _serve_connected(self) -> None:
        """A thread of PostgreSQL's. It has a connection before it takes a job."""
        db.own_thread("default")
        jobs = self._pooled
        while jobs.need():
            try:
                db.connection().ensure_connection()
            except Exception as exc:  # noqa: BLE001  the awaiting tasks get it
                for _, future in jobs.refused():
                    self._finish(future, None, exc)
                self._closing.wait(_PAUSE_S)
                continue
            jobs.connected()
            try:
                while db.connection().connection and (job := jobs.take(self._idle_s)):
                    if not _is_held():
                        jobs.put_back(job)
                        break
                    self._do(job, self._attempt)
                    del job
            finally:
                db.connection().close()
                jobs.left()

    def _do(self, job: Job, attempt: Callable[[Callable[[], Any]], Any]) -> None:
        call, future = job
        if future.cancelled():
            return
        result, error = None, None
        try:
            result = attempt(call)
        except BaseException as exc:  # noqa: BLE001  the awaiting task gets it
            error = exc
        self._finish(future, result, error)

    def _attempt_write(self, call: Callable[[], R]) -> R:
        self._writing_since = time.monotonic()
        try:
            return self._attempt(call)
        finally:
            self._writing_since = None

    def _attempt(self, call: Callable[[], R]) -> R:
        """Drops a broken connection."""
        try:
            return call()
        except OperationalError:
            if not self._sqlite:
                close_old_connections()
                db.connection().close_if_unusable_or_obsolete()
            raise
        except InterfaceError as exc:  # Django does not count it to DatabaseError
            db.connection().close()
            raise OperationalError("The connection to the database was lost.") from exc

    def _finish(self, future: "asyncio.Future[Any]", result: Any, error: Any) -> None:
        with self._lock:
            self._done.append((future, result, error))
            if self._woken:
                return
            self._woken = True
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            logger.warning("A database job ended after its event loop")

    def _deliver(self) -> None:
        with self._lock:
            done, self._done = self._done, deque()
            self._woken = False
        for future, result, error in done:
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

    def _checkpoint(self) -> None:
        """Moves the WAL into the file once a second, so that no commit has to.

        At first and once an hour it is emptied as well: nothing that was purged stays in it.
        """
        due = 0.0
        try:
            while not self._closing.wait(1):
                empty = time.monotonic() >= due
                with suppress(DatabaseError):  # whoever writes says what is wrong
                    mode = "TRUNCATE" if empty else "PASSIVE"
                    [(busy, *_)] = db.rows(f"PRAGMA wal_checkpoint({mode})")
                    if empty and not busy:
                        due = time.monotonic() + _EMPTY_WAL_S
        finally:
            connection.close()


def _is_held() -> bool:
    """Whether the server still holds this thread's idle connection.

    A server that ends a connection says so at once; whatever was said, it is asked then. A job
    that lived with the loss, or called it by another name, left a connection without a socket.
    """
    if db.connection().connection.closed:
        return False
    poll = select.poll()
    poll.register(db.connection().connection.fileno(), select.POLLIN)
    return not poll.poll(0) or db.connection().is_usable()
