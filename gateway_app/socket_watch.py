"""Closes sockets that do not greet, do not read, or may no longer be here.

One loop for all sockets of a process: with a timer each, 25,000 idle ones would cost a core.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Final

from django.db import DatabaseError

from gateway_app import credentials, protocol
from gateway_app.close_codes import LAGGING, POLICY, REVOKED
from gateway_app.config import GatewayConfig
from gateway_app.database_threads import DatabaseLanes
from gateway_app.open_sockets import OpenSocket, OpenSockets
from gateway_app.tasks import end_tasks

logger: Final = logging.getLogger(__name__)

_EVERY_S: Final = 1
_BATCH: Final = 20
"""Credentials checked in one job, so that turns do not wait behind all of them."""


class SocketWatch:
    """Looks after every socket of `sockets`, which come and go."""

    def __init__(self, sockets: OpenSockets, lanes: DatabaseLanes, config: GatewayConfig) -> None:
        self._sockets, self._lanes, self._config = sockets, lanes, config
        self._leaving: set[asyncio.Task[None]] = set()
        self._due = asyncio.Event()

    async def look_forever(self) -> None:
        """Pings, and closes who is silent at first or stays behind."""
        while True:
            await asyncio.sleep(_EVERY_S)
            now = monotonic()
            for one in self._sockets:
                self._look(one, now)

    def check_now(self, user_id: int) -> None:
        """This person's sockets are checked at once: their credentials may have changed."""
        for one in self._sockets.of(user_id):
            one.checked_at = -inf
        self._due.set()

    async def authorise_forever(self) -> None:
        """Closes whose login or token does not hold any more."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S):
                    await self._due.wait()
            self._due.clear()
            since = monotonic() - self._config.reauthorise_s
            due = [one for one in self._sockets if one.checked_at <= since]
            for start in range(0, len(due), _BATCH):
                try:
                    await self._authorise(due[start : start + _BATCH])
                except DatabaseError:
                    logger.warning("The credentials of sockets could not be checked")
                except Exception:  # whatever it was: the other sockets are still to be checked
                    logger.exception("The credentials of sockets could not be checked")

    async def aclose(self) -> None:
        """Nobody is told anything any more."""
        await end_tasks(self._leaving)

    def _look(self, one: OpenSocket, now: float) -> None:
        config, stalled = self._config, one.outbox.stalled_since
        if not one.greeted and now - one.opened_at > config.hello_timeout_s:
            self._leave(one.close(POLICY))
        elif stalled is not None and now - stalled > config.lag_close_s:
            self._leave(one.close(LAGGING))
        elif now - one.pinged_at >= config.heartbeat_ping_s:
            one.pinged_at = now
            one.outbox.put(protocol.control("ping"))

    async def _authorise(self, sockets: Sequence[OpenSocket]) -> None:
        for one in sockets:
            one.checked_at = monotonic()
        # not on a reader: Django drops a web session whose password changed
        valid = await self._lanes.write(
            credentials.credentials_valid, [(one.credential, one.user_id) for one in sockets]
        )
        for one, stays in zip(sockets, valid, strict=True):
            if not stays:
                self._leave(_revoke(one))

    def _leave(self, farewell: Awaitable[None]) -> None:
        """Says it in a task of its own: a client that does not read holds nobody else up."""
        task = asyncio.ensure_future(farewell)
        self._leaving.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._leaving.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("A socket could not be closed", exc_info=error)


async def _revoke(one: OpenSocket) -> None:
    with suppress(TimeoutError):  # whoever does not read is closed all the same
        async with asyncio.timeout(1):
            await one.tell(protocol.control("revoked"))
    await one.close(REVOKED)
