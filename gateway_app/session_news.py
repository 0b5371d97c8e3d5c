"""Tells people's lists of conversations what is new in them, whichever of them a socket watches.

News are noticed where they pass anyway: a run's first and last events, a title; and what a service
says after its commit, of rows or of the session, in this process or another. They are collected for
a moment and read together in one statement: a turn costs one read a commit at most, a delta none.
Any of them may be lost: a client lists its sessions again from time to time.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from django.db import DatabaseError

from gateway_app import protocol
from gateway_app.config import GatewayConfig
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_store import LoggedEvents
from gateway_app.open_sockets import OpenSockets
from gateway_app.selectors.sessions import Listed, read_listed
from gateway_app.wakeups import WakeUps

logger: Final = logging.getLogger(__name__)

_BATCH: Final = 200
_TELLING: Final = (b'{"type":"RUN_', b'{"type":"CUSTOM","name":"hermes.title"')
"""How events begin after which a list may show something else."""


class SessionNews:
    """The news of one process. Lives on its event loop; `note_from_thread` may come from any."""

    def __init__(self, sockets: OpenSockets, lanes: DatabaseLanes, config: GatewayConfig) -> None:
        self._sockets, self._lanes, self._config = sockets, lanes, config
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakeups: WakeUps | None = None
        self._pending: set[UUID] = set()
        self._wanted = asyncio.Event()

    def start(self, wakeups: WakeUps) -> None:
        """News are told to this process's sockets and, by `wakeups`, to other processes."""
        self._loop, self._wakeups = asyncio.get_running_loop(), wakeups

    def look(self, batches: Iterable[LoggedEvents]) -> None:
        """Events that were committed here: some of them are news for a list."""
        for logged in batches:
            if any(event.startswith(_TELLING) for event in logged.events):
                self.note(logged.session_id)

    def note(self, session_id: UUID) -> None:
        """Something was committed here."""
        if self._wakeups is not None:
            self._wakeups.tell_listed([session_id])
        self.note_elsewhere(session_id)

    def note_elsewhere(self, session_id: UUID) -> None:
        """Something was committed by another process, which has told everybody."""
        self._pending.add(session_id)
        self._wanted.set()

    def note_from_thread(self, session_id: UUID) -> None:
        """As `note`, from the thread that committed."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.note, session_id)

    async def tell_forever(self) -> None:
        """Collects for a tick, reads, tells."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(self._config.news_tick_ms / 1000)
            self._wanted.clear()
            pending, self._pending = list(self._pending), set()
            try:
                for start in range(0, len(pending), _BATCH):
                    await self._tell(pending[start : start + _BATCH])
            except DatabaseError:
                logger.warning("The news of sessions could not be read")

    async def _tell(self, session_ids: Sequence[UUID]) -> None:
        if not self._sockets:
            return
        for session_id, listed in (await self._lanes.read(read_listed, session_ids)).items():
            sockets = [one for one in self._sockets.of(listed[0]) if one.greeted]
            text = _frame(session_id, listed) if sockets else ""
            for one in sockets:
                one.outbox.put_news(session_id, text)


def _frame(session_id: UUID, listed: Listed) -> str:
    if listed[1] is None:
        return protocol.control("gone", sessionId=str(session_id))
    return protocol.control("session", session=listed[1])
