"""Logged before shown: one process's group commit of the events of all its running turns.

The first delta of a run and its terminal event flush at once, other deltas at the tick. One flush
is in flight; what arrives meanwhile is the next batch. Deltas that a flush takes together are one
event.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Final
from uuid import UUID

from django.db import DatabaseError

from gateway_app import events, metrics
from gateway_app.config import GatewayConfig
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_store import LoggedEvents, RunBatch, find_landed, flush_runs
from gateway_app.services.starting import RunLease
from gateway_app.storage import StorageState
from gateway_app.tasks import end_tasks
from sessions_app import database as db

logger = logging.getLogger(__name__)

_BUSY_TICKS: Final = 4
_AWAY_PAUSE_S: Final = 0.5

Contents = Callable[[str, str], bytes]


class RunLog:
    """What one run wants logged, in order, until a flush or the run's own transaction takes it."""

    def __init__(self, log: "EventLog", run: RunLease, on_lost: Callable[[str], None]) -> None:
        self.run = run
        self.on_lost = on_lost
        self.busy_ticks = 0
        self.failing_since: float | None = None
        self.last_seq = run.last_seq
        self.in_doubt = False
        """What was written last broke off: it may have been committed all the same."""
        self._log = log
        self._events: list[bytes] = []
        self._content: tuple[Contents, str] | None = None
        self._deltas: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._events or self._deltas)

    def add(self, *new: bytes, urgent: bool = False) -> None:
        """The events come next."""
        self._close_content()
        self._events += new
        self._log.want(self, urgent=urgent)

    def add_content(
        self, build: Contents, message_id: str, delta: str, *, urgent: bool = False
    ) -> None:
        """A piece of a message comes next; pieces of one message become one event."""
        if self._content != (build, message_id):
            self._close_content()
            self._content = (build, message_id)
        self._deltas.append(delta)
        if urgent or len(self._deltas) == 1:  # with more, it is wanted already
            self._log.want(self, urgent=urgent)

    def _close_content(self) -> None:
        if self._content is not None and self._deltas:
            build, message_id = self._content
            self._events.append(build(message_id, "".join(self._deltas)))
        self._content, self._deltas = None, []

    def take(self) -> tuple[bytes, ...]:
        """Everything that waits; it is the caller's to log."""
        self._close_content()
        taken, self._events = tuple(self._events), []
        return taken

    def put_back(self, taken: tuple[bytes, ...]) -> None:
        self._close_content()
        self._events[:0] = taken

    def confirm(self, landed: LoggedEvents) -> None:
        """What waits in front was committed by the write in doubt."""
        self._events = self._events[len(landed.events) :]
        self.last_seq = landed.last_seq

    async def landed(self) -> None:
        """Everything so far is committed and shown; a database that is away is waited for."""
        await self._log.landed(self)

    async def settle(self) -> None:
        """No flush of this run is in flight or in doubt: the run's own transaction comes after it.

        Raises DatabaseError when a doubt cannot be settled.
        """
        await self._log.settle(self)
        await self._log.resolve(self)


class EventLog:
    """The group commit. `publish` is called on the loop, after the commit, in the log's order."""

    def __init__(
        self,
        lanes: DatabaseLanes,
        config: GatewayConfig,
        publish: Callable[[list[LoggedEvents]], None],
        storage: StorageState,
    ) -> None:
        self._lanes, self._storage = lanes, storage
        self._config = config
        self._publish = publish
        self._runs: dict[UUID, RunLog] = {}
        self._dirty: dict[RunLog, None] = {}
        self._wanted = asyncio.Event()
        self._urgent = asyncio.Event()
        self._flushing: frozenset[RunLog] = frozenset()
        self._flushed = asyncio.Condition()
        self._last_flush = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._flush_forever(), name="hermes-event-log")

    async def aclose(self) -> None:
        """Flushes what waits, then ends."""
        if self._task is not None:
            await end_tasks([self._task])
        if self._dirty:
            await self._flush()

    def open(self, run: RunLease, on_lost: Callable[[str], None]) -> RunLog:
        """A log for one run. `on_lost` is told `fenced` or `storage` when it cannot go on."""
        opened = RunLog(self, run, on_lost)
        self._runs[run.turn_id] = opened
        return opened

    def close(self, closed: RunLog) -> None:
        """The run has ended: what it still has is not logged."""
        if self._runs.get(closed.run.turn_id) is closed:
            del self._runs[closed.run.turn_id]
        self._dirty.pop(closed, None)
        if not self._dirty:  # nothing is left that could find out that it is back
            self._storage.back(self)

    def want(self, run_log: RunLog, *, urgent: bool) -> None:
        self._dirty[run_log] = None
        self._wanted.set()
        if urgent:
            self._urgent.set()

    async def settle(self, run_log: RunLog) -> None:
        async with self._flushed:
            await self._flushed.wait_for(lambda: run_log not in self._flushing)

    async def landed(self, run_log: RunLog) -> None:
        self.want(run_log, urgent=True)
        async with self._flushed:
            await self._flushed.wait_for(lambda: not run_log and run_log not in self._flushing)

    async def resolve(self, run_log: RunLog) -> None:
        """Finds out whether a flush in doubt was committed, so that nothing is logged twice."""
        if not run_log.in_doubt:
            return
        run = run_log.run
        landed = await self._lanes.write(
            find_landed, run.session_id, run.turn_id, run.generation, after=run_log.last_seq
        )
        run_log.in_doubt = False
        if landed is not None:
            run_log.confirm(landed)
            self._publish([landed])

    def _tick_s(self) -> float:
        quick = len(self._runs) < self._config.flush_quick_runs
        return (self._config.flush_quick_tick_ms if quick else self._config.flush_tick_ms) / 1000

    async def _flush_forever(self) -> None:
        while True:
            await self._wanted.wait()
            rest = self._last_flush + self._tick_s() - monotonic()
            if rest > 0 and not self._urgent.is_set():
                try:
                    async with asyncio.timeout(rest):
                        await self._urgent.wait()
                except TimeoutError:
                    pass
            self._urgent.clear()
            self._wanted.clear()
            self._last_flush = monotonic()
            await self._flush()

    async def _flush(self) -> None:
        ready, self._dirty = [log for log in self._dirty if log], {}
        alone = [log for log in ready if log.busy_ticks >= _BUSY_TICKS]
        together = [log for log in ready if log.busy_ticks < _BUSY_TICKS]
        written = True
        for group, wait in [(together, False), *(([log], True) for log in alone)]:
            if group:
                written = await self._flush_group(group, wait=wait) and written
        if not written:
            await asyncio.sleep(_AWAY_PAUSE_S)

    async def _flush_group(self, group: list[RunLog], *, wait: bool) -> bool:
        """False if the database took none of it: it is kept, and tried again."""
        self._flushing = frozenset(group)
        taken: dict[RunLog, tuple[bytes, ...]] = dict.fromkeys(group, ())
        logged: list[LoggedEvents] = []
        try:
            for log in group:
                await self.resolve(log)
            taken = {log: log.take() for log in group if log}
            if not taken:
                return True
            batches = [
                RunBatch(log.run.session_id, log.run.turn_id, log.run.generation, what)
                for log, what in taken.items()
            ]
            began = monotonic()
            logged, fenced = await asyncio.shield(self._lanes.write(flush_runs, batches, wait=wait))
            metrics.flush_duration.observe(monotonic() - began)
            metrics.flush_events.observe(sum(map(len, taken.values())))
        except DatabaseError as exc:
            logger.exception("The event log could not be written", extra={"runs": len(group)})
            self._keep(taken, apart=not isinstance(exc, db.AWAY))
            if isinstance(exc, db.AWAY):
                self._storage.away(self)
            return False
        else:
            self._storage.back(self)
            self._publish(logged)
            self._account(taken, {one.session_id: one.last_seq for one in logged}, set(fenced))
            return True
        finally:
            self._flushing = frozenset()
            async with self._flushed:
                self._flushed.notify_all()

    def _account(
        self, taken: dict[RunLog, tuple[bytes, ...]], logged: dict[UUID, int], fenced: set[UUID]
    ) -> None:
        """`logged`: the last seq of each session whose events were committed."""
        for log, what in taken.items():
            log.failing_since = None
            if log.run.session_id in logged:
                log.busy_ticks = 0
                log.last_seq = logged[log.run.session_id]
            elif log.run.session_id in fenced:
                log.on_lost("fenced")
            else:
                log.busy_ticks += 1
                log.put_back(what)
                self.want(log, urgent=False)

    def _keep(self, taken: dict[RunLog, tuple[bytes, ...]], *, apart: bool) -> None:
        """The events wait for the database to come back, for a while.

        `apart`: one run's events may be what it refuses, so the runs are tried one by one.
        """
        now = monotonic()
        for log, what in taken.items():
            log.put_back(what)
            log.in_doubt = log.in_doubt or bool(what)
            log.failing_since = log.failing_since or now
            if apart:
                log.busy_ticks = _BUSY_TICKS
            if now - log.failing_since > self._config.storage_patience_s:
                log.on_lost("storage")
            else:
                self.want(log, urgent=False)


text_content: Final[Contents] = events.text_content
reasoning_content: Final[Contents] = events.reasoning_content
