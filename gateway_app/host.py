"""One process's gateway: everything that lives as long as its event loop, put together once."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError

from gateway_app import group_metrics, metrics, protocol
from gateway_app.agent_cache import AgentCache
from gateway_app.close_codes import RESTART
from gateway_app.config import GatewayConfig, gateway_config
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_log import EventLog
from gateway_app.event_store import LoggedEvents, read_last_seqs
from gateway_app.housekeeping import Housekeeping
from gateway_app.limits import Limits
from gateway_app.moment import Moment
from gateway_app.open_sockets import OpenSockets
from gateway_app.orders import Order, forget_gateway, register_gateway
from gateway_app.providers.registry import Providers
from gateway_app.receivers import forget_lists, register_cache, register_lists
from gateway_app.revocation import forget_watch, register_watch
from gateway_app.services.recovery import find_leased, release_runs
from gateway_app.session_news import SessionNews
from gateway_app.shared_limits import SharedLimits
from gateway_app.socket_watch import SocketWatch
from gateway_app.storage import StorageState
from gateway_app.subscriptions import Hub
from gateway_app.tasks import end_tasks
from gateway_app.turns.heartbeat import Heartbeat, new_lease_owner
from gateway_app.turns.presence import PresenceBeat
from gateway_app.turns.runner import TurnRunner
from gateway_app.wakeups import Ears, WakeUps

logger: Final = logging.getLogger(__name__)


class PublishingHub(Hub):
    """A hub that also wakes other processes and tells lists."""

    def __init__(self, wakeups: WakeUps, news: SessionNews) -> None:
        super().__init__()
        self._wakeups, self._news = wakeups, news

    def publish(self, batches: Iterable[LoggedEvents]) -> None:
        batches = list(batches)
        super().publish(batches)
        self._wakeups.tell_events(batches)
        self._news.look(batches)


class GatewayHost:
    """Threads, log, hub, agents, providers and turns of one process."""

    def __init__(self, config: GatewayConfig) -> None:
        self.config = config
        self.lease_owner = new_lease_owner()
        self.connections = OpenSockets()
        self.limits = Limits(config, _shared_limits(config, self.lease_owner))
        self.lanes = DatabaseLanes(readers=config.reader_threads, postgres=config.postgres_threads)
        self._watch = SocketWatch(self.connections, self.lanes, config)
        self.news = SessionNews(self.connections, self.lanes, config)
        self.wakeups = WakeUps(
            Ears(
                events=lambda session_id, seq: self.hub.note(session_id, seq),
                listed=self.news.note_elsewhere,
                stop=lambda turn_id, generation: self.runner.stop(turn_id, generation),
                work=lambda: self._heartbeat.hurry(),
                revoked=self._watch.check_now,
            ),
            self.lease_owner,
        )
        self.hub = PublishingHub(self.wakeups, self.news)
        self.cache = AgentCache(
            entries=config.cache_entries,
            idle_s=config.cache_idle_s,
            size_bytes=config.cache_bytes,
        )
        self.storage = StorageState(self._tell_storing)
        self.log = EventLog(self.lanes, config, self.hub.publish, self.storage)
        self.providers = Providers(config)
        self.runner = TurnRunner(
            lanes=self.lanes,
            cache=self.cache,
            log=self.log,
            hub=self.hub,
            providers=self.providers,
            wakeups=self.wakeups,
            storage=self.storage,
            config=config,
            lease_owner=self.lease_owner,
        )
        self._heartbeat = Heartbeat(self.runner, self.lanes, self.hub, config)
        self.moment = Moment(self.runner, self.cache, self.connections, self.lanes)
        self._caches = (self.cache, self.runner.fallback_cache)
        self._presence = PresenceBeat(self.lanes, self._caches, config, self.lease_owner)
        self._tasks: list[asyncio.Task[Any]] = []
        self._started: asyncio.Task[None] | None = None

    @property
    def draining(self) -> bool:
        """Whether this process takes no new turns."""
        return self.runner.draining

    async def start(self, *, checkpoint: bool = True) -> None:
        """Everything runs, orphaned turns included; idempotent. One that failed is tried again."""
        if self._started is None:
            self._started = asyncio.create_task(self._start(checkpoint))
        started = self._started
        try:
            await asyncio.shield(started)
        except DatabaseError:
            if self._started is started:
                self._started = None
            raise

    async def _start(self, checkpoint: bool) -> None:
        self.lanes.start(checkpoint=checkpoint)
        try:
            leased = await self.lanes.read(find_leased)
            await self._presence.tell()
        except DatabaseError:
            await asyncio.to_thread(self.lanes.close)
            raise
        register_cache(self.cache)
        self.wakeups.start()
        self.news.start(self.wakeups)
        register_lists(self.news)
        self._loop = asyncio.get_running_loop()
        register_watch(self)
        register_gateway(self)
        self.log.start()
        await self._heartbeat.recover_at_start(leased)
        housekeeping = Housekeeping(self.lanes, self._caches, self.config, self.lease_owner)
        self._spawn(self._heartbeat.run())
        self._spawn(self._poll())
        self._spawn(self.news.tell_forever())
        self._spawn(self._watch.look_forever())
        self._spawn(self._watch.authorise_forever())
        self._spawn(housekeeping.run())
        self._spawn(self._presence.run())
        self._spawn(self.limits.run())
        self._spawn(self.providers.warm())
        self._spawn(self.providers.keep_listed())
        self._spawn(metrics.watch_loop())
        if group_metrics.in_group():
            self._spawn(self.moment.look_forever())

    def _tell_storing(self, storing: bool) -> None:
        """Whoever looks on learns why nothing moves, and that it moves again."""
        for connection in self.connections:
            connection.outbox.put(protocol.control("storage", storing=storing))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def drain(self, grace_s: float | None = None) -> None:
        """No new turns; running ones get the grace; the rest is left to others; sockets close."""
        self.runner.draining = True
        for connection in self.connections:
            connection.outbox.put(protocol.control("draining"))
        grace = self.config.drain_s if grace_s is None else grace_s
        if not await self.runner.wait_idle(grace):
            await self.runner.aclose()
            try:
                await self.lanes.write(
                    release_runs, turn_ids=list(self.runner.left), lease_owner=self.lease_owner
                )
            except DatabaseError:
                logger.warning("Runs could not be released; others take them when their lease ends")
            self.wakeups.tell_work()
        for connection in self.connections:
            await connection.close(RESTART)

    async def aclose(self) -> None:
        """Everything has ended; database threads last."""
        forget_lists(self.news)
        forget_watch(self)
        forget_gateway(self)
        await self.runner.aclose()
        await end_tasks(self._tasks)
        await self._watch.aclose()
        await self.log.aclose()
        await self.wakeups.aclose()
        await self.limits.aclose()
        await self.providers.aclose()
        await self._presence.aclose()
        await asyncio.to_thread(self.lanes.close)

    def revoke_from_thread(self, user_id: int) -> None:
        """This person's sockets are checked at once, here and by other processes."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._watch.check_now, user_id)
            self._loop.call_soon_threadsafe(self.wakeups.tell_revoked, user_id)

    def obey_from_thread(self, order: Order) -> None:
        """What an operator ordered in this process is done, here and by other processes."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._obey, order)

    def _obey(self, order: Order) -> None:
        self.hub.publish(order.logged)
        if order.stop is not None:
            self.runner.order_stop(*order.stop)
        if order.work:
            self._heartbeat.hurry()
            self.wakeups.tell_work()

    async def _poll(self) -> None:
        """Heals lost wake-ups: asks the database how far the watched sessions reach."""
        while True:
            await asyncio.sleep(self.config.poll_s)
            sessions = self.hub.sessions()
            try:
                for start in range(0, len(sessions), 500):
                    seqs = await self.lanes.read(read_last_seqs, sessions[start : start + 500])
                    for session_id, seq in seqs.items():
                        self.hub.note(session_id, seq)
            except DatabaseError:
                logger.warning("The poll could not reach the database")


def _shared_limits(config: GatewayConfig, owner: str) -> SharedLimits | None:
    """The counts that this process shares with others; None: it has nobody to share with."""
    url = settings.ENVIRONMENT.redis_url
    return SharedLimits(url, owner, forget_s=config.limits_forget_s) if url else None


_host: GatewayHost | None = None


def host() -> GatewayHost:
    """This process's gateway."""
    global _host
    if _host is None:
        _host = GatewayHost(gateway_config())
    return _host


def set_host(new: GatewayHost | None) -> None:
    """Puts another gateway in the process's place (tests, benchmarks); None forgets it."""
    global _host
    _host = new


async def ensure_started() -> None:
    """The gateway runs: the first ASGI call starts it under any server."""
    await host().start()
