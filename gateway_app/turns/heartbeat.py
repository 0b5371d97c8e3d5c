"""What a process does each second for its turns: obey orders, keep leases, find orphans."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from time import monotonic
from uuid import UUID

from django.db import DatabaseError

from gateway_app import metrics
from gateway_app.config import GatewayConfig
from gateway_app.database_threads import DatabaseLanes
from gateway_app.models import Turn
from gateway_app.services import recovery
from gateway_app.services.recovery import Orphan
from gateway_app.services.stranded import end_stranded
from gateway_app.subscriptions import Hub
from gateway_app.turns.runner import TurnRunner
from sessions_app import database as db

logger = logging.getLogger(__name__)


def new_lease_owner() -> str:
    """This process's name on its leases: host, pid, and a random word for this life."""
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{os.urandom(4).hex()}"


def owner_is_dead(lease_owner: str) -> bool:
    """True when a lease's owner surely is gone: an earlier process of this very machine."""
    host, _, rest = lease_owner.partition(":")
    pid = rest.partition(":")[0]
    if host != socket.gethostname()[:32] or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


class Heartbeat:
    """The loop of one process's leases."""

    def __init__(
        self, runner: TurnRunner, lanes: DatabaseLanes, hub: Hub, config: GatewayConfig
    ) -> None:
        self._runner, self._lanes, self._hub, self._config = runner, lanes, hub, config
        self._renewed_at = monotonic()
        self._hurried = asyncio.Event()
        self._broken: set[UUID] = set()
        self._doubted: set[UUID] = set()
        """Turns whose recovery here broke off: it may have ended them all the same."""

    async def run(self) -> None:
        """Beats for ever; a database that is away is waited for."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.heartbeat_s):
                    await self._hurried.wait()
            self._hurried.clear()
            try:
                await self.beat()
            except DatabaseError:
                logger.warning("The heartbeat could not reach the database")
            except Exception:  # without its beat every turn of this process would lose its lease
                logger.exception("A heartbeat broke off")

    def hurry(self) -> None:
        """The next beat is now: somebody left a turn, or let one wait for whoever takes it."""
        self._hurried.set()

    async def beat(self) -> None:
        """One beat: orders, leases, orphans, turns that wait without anyone to start them."""
        await self._obey()
        await self._renew()
        await self._settle()
        if self._runner.draining or self._config.turns != "inline":
            return
        for orphan in await self._lanes.read(
            recovery.find_orphans, asking=self._runner.lease_owner
        ):
            await self._take_up(orphan.session_id, self._recover(orphan))
        for session_id in await self._lanes.read(recovery.find_startable):
            await self._take_up(session_id, self._runner.start_next(session_id))
        for session_id in await self._lanes.read(recovery.find_stranded):
            await self._take_up(session_id, self._end_stranded(session_id))

    async def recover_at_start(self, leased: Sequence[Orphan]) -> int:
        """Takes over what an earlier process of this machine left; how many turns."""
        orphans = [
            orphan
            for orphan in leased
            if orphan.lease_owner != self._runner.lease_owner and owner_is_dead(orphan.lease_owner)
        ]
        for orphan in orphans:
            await self._take_up(orphan.session_id, self._recover(orphan))
        return len(orphans)

    async def _take_up(self, session_id: UUID, work: Awaitable[object]) -> None:
        """One session's turn is taken up; a session that cannot be leaves the others alone."""
        try:
            await work
        except Exception:  # whatever is wrong with a session, it is said once
            if session_id not in self._broken:
                logger.exception("A turn could not be taken up", extra={"session": session_id})
            self._broken.add(session_id)
        else:
            self._broken.discard(session_id)

    async def _obey(self) -> None:
        """Stops runs that a person stopped anywhere, and runs that lost their session."""
        live = dict(self._runner.live)
        if not live:
            return
        orders = await self._lanes.read(recovery.read_orders, list(live))
        for turn_id, one in live.items():
            generation, stop = orders.get(turn_id, (-1, False))
            if generation != one.run.generation:
                one.stop("fenced")
            elif stop:
                one.stop("stopped")

    async def _renew(self) -> None:
        now = monotonic()
        sessions = [live.run.session_id for live in self._runner.live.values()]
        if sessions and now - self._renewed_at >= self._config.lease_renew_s:
            await self._lanes.write(
                recovery.renew_leases,
                lease_owner=self._runner.lease_owner,
                session_ids=sessions,
            )
            self._renewed_at = now

    async def _settle(self) -> None:
        """Every turn that this process ended is counted, though it was not told of the commit."""
        for turn_id in tuple(self._doubted):
            _count(await self._lanes.write(
                recovery.read_ended, turn_id=turn_id, lease_owner=self._runner.lease_owner
            ))  # fmt: skip
            self._doubted.discard(turn_id)

    async def _end_stranded(self, session_id: UUID) -> None:
        if logged := await self._lanes.write(end_stranded, session_id=session_id):
            self._hub.publish([logged])

    async def _recover(self, orphan: Orphan) -> None:
        if self._runner.draining or self._runner.has_in_hand(orphan):
            return  # what a drain broke off meanwhile is no orphan of ours
        try:
            recovered = await self._lanes.write(
                recovery.recover_turn, orphan=orphan, lease_owner=self._runner.lease_owner
            )
        except db.AWAY:
            self._doubted.add(orphan.turn_id)
            raise
        if recovered is None:
            return
        logger.info("Recovered a turn", extra={"session": orphan.session_id,
                                               "turn": orphan.turn_id})  # fmt: skip
        self._hub.publish(recovered.logged)
        _count(recovered.ended)
        if recovered.run is not None:
            self._runner.launch(recovered.run)
        else:
            await self._runner.start_next(orphan.session_id)


def _count(ended: Turn | None) -> None:
    if ended is not None:
        metrics.count_turn(ended.state, ended.error_code, ended)
