"""Owns the tasks of this process's running turns. Sockets come and go; turns stay."""

import asyncio
import contextvars
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import DatabaseError

from gateway_app import metrics
from gateway_app.agent import run_turn
from gateway_app.agent_cache import AgentCache
from gateway_app.cached_agent import GuardRefused, Verdict
from gateway_app.config import GatewayConfig
from gateway_app.database_threads import DatabaseLanes
from gateway_app.errors import Draining, GatewayError
from gateway_app.event_log import EventLog
from gateway_app.inbound import Inbound
from gateway_app.profiles import Profiles
from gateway_app.providers.base import ProviderError
from gateway_app.providers.registry import Providers
from gateway_app.services.recovery import Orphan
from gateway_app.services.runs import RunWrite, RunWritten, has_ended
from gateway_app.services.starting import RunLease
from gateway_app.services.turns import Accepted, accept_turn, start_next_turn
from gateway_app.storage import StorageState
from gateway_app.subscriptions import Hub
from gateway_app.tools.calls import ToolCalls
from gateway_app.turns.ending import AWAY, Ending, ending_write, unstored_write
from gateway_app.turns.live_run import LiveRun
from gateway_app.wakeups import WakeUps
from sessions_app import database as db
from sessions_app.errors import RunFenced, SessionError
from sessions_app.sentences import say

logger = logging.getLogger(__name__)

R = TypeVar("R")

_STOPPED: Final = {"stopped": Ending("stopped"), "storage": Ending("failed", "storage", AWAY)}
"""Why a run was stopped -> how it ends. Any other one is not ours to end."""


def _read_refusal(accepting: "asyncio.Task[Accepted]") -> None:
    """Whoever asked has left: a refusal is no fault, anything else belongs in the log."""
    error = None if accepting.cancelled() else accepting.exception()
    if error is not None and not isinstance(error, SessionError | GatewayError):
        logger.error("A message whose sender left was not accepted", exc_info=error)


class TurnRunner:
    """The turns that run in this process, by turn id."""

    def __init__(
        self,
        *,
        lanes: DatabaseLanes,
        cache: AgentCache,
        log: EventLog,
        hub: Hub,
        providers: Providers,
        wakeups: WakeUps,
        storage: StorageState,
        config: GatewayConfig,
        lease_owner: str,
    ) -> None:
        self.lease_owner = lease_owner
        self.draining = False
        self._closing = False
        self.left: set[UUID] = set()
        """Turns whose runs were broken off here for another process."""
        self.live: dict[UUID, LiveRun] = {}
        self._lanes, self._cache, self._log, self._hub = lanes, cache, log, hub
        self._providers, self._wakeups, self._config = providers, wakeups, config
        self._storage = storage
        self._profiles = Profiles(lanes, providers)
        self._tools = ToolCalls(config)
        self.fallback_cache = AgentCache(
            entries=config.fallback_cache_entries,
            idle_s=config.cache_idle_s,
            size_bytes=config.fallback_cache_bytes,
        )
        self._tasks: set[asyncio.Task[Any]] = set()
        self._taking: Counter[UUID | None] = Counter()

    async def accept(self, inbound: Inbound, session_id: UUID | None) -> Accepted:
        """The message is durable, and its turn runs or waits, whatever becomes of the caller.

        Raises Draining and what `accept_turn` raises.
        """
        if self.draining:
            raise Draining
        accepting = self._detach(self._accept(inbound, session_id))
        try:
            return await asyncio.shield(accepting)
        except asyncio.CancelledError:
            accepting.add_done_callback(_read_refusal)
            raise

    async def _accept(self, inbound: Inbound, session_id: UUID | None) -> Accepted:
        with self._take(session_id):
            accepted = await self._lanes.write(
                accept_turn,
                inbound=inbound,
                session_id=session_id,
                lease_owner=self.lease_owner,
                start=self._config.turns == "inline",
            )
        self._hub.publish(accepted.logged)
        if accepted.stopping is not None:
            self.order_stop(*accepted.stopping)
        if accepted.run is not None:
            self.launch(accepted.run)
        elif accepted.startable and self._config.turns == "inline":
            await self._start_next(accepted.session_id)
        elif accepted.startable:
            self._wakeups.tell_work()
        return accepted

    async def start_next(self, session_id: UUID) -> bool:
        """The first waiting turn of a free session runs here; False if there is none."""
        if self.draining:
            return False
        return await asyncio.shield(self._detach(self._start_next(session_id)))

    async def _start_next(self, session_id: UUID) -> bool:
        if self._config.turns != "inline":
            return False
        try:
            with self._take(session_id):
                started = await self._lanes.write(
                    start_next_turn, session_id=session_id, lease_owner=self.lease_owner
                )
        except SessionError:
            return False
        if started is None:
            return False
        self._hub.publish([started[1]])
        self.launch(started[0])
        return True

    def launch(self, run: RunLease) -> None:
        """The run goes on here, in a task of its own."""
        live = LiveRun(
            run,
            lanes=self._lanes,
            cache=self._cache,
            fallback_cache=self.fallback_cache,
            log=self._log,
            hub=self._hub,
            profiles=self._profiles,
            tools=self._tools,
        )
        self.live[run.turn_id] = live
        if self._closing:  # its lease was on the way when the others were stopped
            live.stop("draining")
        self._detach(self._run(live))

    @contextmanager
    def _take(self, session_id: UUID | None) -> Iterator[None]:
        """A write that may take the lease of a session (None: of a new one) is in flight.

        What it started is launched in the step of the event loop in which this ends.
        """
        self._taking[session_id] += 1
        try:
            yield
        finally:
            self._taking[session_id] -= 1
            self._taking += Counter()  # drops what is zero

    def has_in_hand(self, orphan: Orphan) -> bool:
        """Whether the turn runs here, or may be about to.

        A turn of this process's own lease that is not in hand is an orphan at once: its run broke
        off, or the confirmation of the commit that took the lease was lost.
        """
        if orphan.turn_id in self.live:
            return True
        coming = self._taking[orphan.session_id] + self._taking[None]
        return orphan.lease_owner == self.lease_owner and coming > 0

    def stop(self, turn_id: UUID, generation: int, why: str = "stopped") -> bool:
        """Ends a run of this process; False if it does not run here."""
        live = self.live.get(turn_id)
        if live is None or live.run.generation != generation:
            return False
        live.stop(why)
        return True

    def order_stop(self, turn_id: UUID, generation: int) -> None:
        """Ends a run whose stop is recorded, wherever it is."""
        if not self.stop(turn_id, generation):
            self._wakeups.tell_stop(turn_id, generation)

    async def wait_idle(self, limit_s: float) -> bool:
        """Waits until nothing runs here or is about to; False if it still does after `limit_s`."""
        try:
            async with asyncio.timeout(limit_s):
                while self._tasks:
                    await asyncio.wait(set(self._tasks))
        except TimeoutError:
            return False
        return True

    async def aclose(self) -> None:
        """Every task of this runner has ended; runs in flight are left to another process."""
        self.draining = self._closing = True
        for live in list(self.live.values()):
            live.stop("draining")
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        self._closing = False

    def _detach(self, coroutine: Coroutine[Any, Any, R]) -> "asyncio.Task[R]":
        """A task of its own, which does not keep the context of the socket that asked for it."""
        task = asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, live: LiveRun) -> None:
        run = live.run
        caches = (self._cache, self.fallback_cache)
        for cache in caches:
            cache.pin(run.session_id)
        try:
            ending = await self._ending_of(live)
            await live.settle()
            if ending is not None and not live.in_doubt:
                await self._finish(live, ending)
        except RunFenced:
            logger.info("A run was fenced", extra=_facts(run))
        except DatabaseError:
            logger.exception("A run's end could not be stored", extra=_facts(run))
        except Exception:  # top of a turn's task: it must end, and say so
            logger.exception("A run's end broke off", extra=_facts(run))
        finally:
            self._log.close(live.log)
            self._storage.back(live)
            for cache in caches:
                cache.unpin(run.session_id)
            del self.live[run.turn_id]
            if live.stopping == "draining":
                self.left.add(run.turn_id)

    async def _ending_of(self, live: LiveRun) -> Ending | None:
        """Runs the agent; how it ended. None: the run is no longer ours to end."""
        live.task = asyncio.create_task(run_turn(live))
        if live.stopping:
            live.task.cancel()
        try:
            await live.task
        except asyncio.CancelledError:
            if live.stopping is None:
                raise
            return _STOPPED.get(live.stopping)
        except ProviderError as exc:
            logger.info("A model call failed", extra=_facts(live.run) | {"code": exc.code})
            return Ending("failed", exc.code, exc.sentence)
        except GuardRefused as exc:
            live.record.verdict, live.record.reason = Verdict.REFUSE.value, exc.reason.value
            return Ending("failed", "storage", exc.sentence)
        except DatabaseError:
            logger.exception("A run lost the database", extra=_facts(live.run))
            return Ending("failed", "storage", AWAY)
        except RunFenced:
            return None
        except Exception:  # top of a turn's task: the turn is closed, and says so
            logger.exception("A run broke off", extra=_facts(live.run))
            text = say("Something broke in this server. Your message is kept; try again.")
            return Ending("failed", "interrupted", text)
        return Ending("completed")

    async def _finish(self, live: LiveRun, ending: Ending) -> None:
        live.record.cost_usd = live.cost_usd
        write = ending_write(live, ending, None if self.draining else self.lease_owner)
        try:
            written = await self._store_end(live, write)
        except db.AWAY:
            raise
        except DatabaseError:
            logger.exception("A run's end was refused by the database", extra=_facts(live.run))
            write = unstored_write(live, write)
            written = await self._store_end(live, write)
        metrics.count_turn(write.state or "", write.record.error_code or "", write.record)
        if written is not None and written.next_run is not None:
            self.launch(written.next_run)
        elif self.draining:
            self._wakeups.tell_work()

    async def _store_end(self, live: LiveRun, write: RunWrite) -> RunWritten | None:
        """The run's last transaction; while the database is away it waits here, lease and all.

        Only a drain ends the wait: whoever recovers the turn knows from the log what was shown.
        None: it happened, but the news of the commit was lost. The heartbeat finds what it started.
        """
        tries = 0
        while True:
            try:
                with self._take(live.run.session_id):
                    return await live.write(write)
            except RunFenced:
                if tries and await self._has_ended(live.run, write):
                    return None
                raise
            except db.AWAY as exc:
                if live.stopping == "draining":
                    raise
                if tries == 0:
                    reason = {"reason": str(exc).partition("\n")[0]}
                    logger.warning(
                        "A run's end waits for the database", extra=_facts(live.run) | reason
                    )
                self._storage.away(live)
            tries += 1
            await asyncio.sleep(self._config.storage_retry_s)

    async def _has_ended(self, run: RunLease, write: RunWrite) -> bool:
        """Whether this end is stored; if the database does not say, one turn is not counted."""
        try:
            return await self._lanes.read(has_ended, run, write.record)
        except DatabaseError:
            return False


def _facts(run: RunLease) -> dict[str, object]:
    return {"session": run.session_id, "turn": run.turn_id, "generation": run.generation}
