"""A connection's sending side: a bounded window, and the log for everything beyond it.

At most `window_frames` or `window_bytes` of unacknowledged frames; then nothing more is read for
this socket (nothing is buffered: it is in the database), and it is closed when it stays so.

What the log no longer tells exactly, because it was folded or trimmed while the client was behind,
is replaced by a snapshot.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final
from uuid import UUID

from django.db import DatabaseError

from gateway_app import protocol
from gateway_app.config import GatewayConfig
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_store import LoggedEvents, fold_events, read_events
from gateway_app.events import frame
from gateway_app.selectors.sessions import read_snapshot
from gateway_app.subscriptions import Subscription
from sessions_app.errors import SessionNotFound

logger = logging.getLogger(__name__)

_PAGE_ROWS: Final = 64


class Outbox:
    """Sends replies and control frames as they come, event frames as the window allows."""

    def __init__(
        self,
        send: Callable[[str], Awaitable[None]],
        lanes: DatabaseLanes,
        config: GatewayConfig,
        user_id: int,
    ) -> None:
        self._send = send
        self._user_id = user_id
        self._lanes = lanes
        self._config = config
        self._ready: deque[tuple[str, int]] = deque()
        """Texts, and what each of them counts for in `_unread`."""
        self._unread = 0
        self._news: dict[UUID, str] = {}
        """Of each session only the newest: who does not read costs no more than a list."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._frames = 0
        self._bytes = 0
        self.stalled_since: float | None = None
        self.subscriptions: dict[UUID, Subscription] = {}

    def put(self, text: str) -> None:
        """A reply or a control frame. Whoever works for replies waits for `idle` before it."""
        self._append(text, 0)
        self._wake.set()

    def answer(self, text: str) -> bool:
        """A reply that waits for nothing; False when too many of these wait for the client."""
        room = self._unread < self._config.window_bytes
        self._unread += len(text)
        self._append(text, len(text))
        self._wake.set()
        return room

    def put_news(self, session_id: UUID, text: str) -> None:
        """A control frame about the session; it takes the place of one that was not sent yet."""
        self._news[session_id] = text
        self._wake.set()

    async def idle(self) -> None:
        """Everything is sent, and the client reads: the next command may be worked on."""
        await self._idle.wait()

    def _append(self, text: str, counted: int) -> None:
        self._ready.append((text, counted))
        self._idle.clear()

    def wake(self) -> None:
        self._wake.set()

    @property
    def _open(self) -> bool:
        room = self._frames < self._config.window_frames and self._bytes < self._config.window_bytes
        if room:
            self.stalled_since = None
        elif self.stalled_since is None:
            self.stalled_since = monotonic()
        return room

    def offer(self, subscription: Subscription, logged: LoggedEvents) -> bool:
        """Takes live frames while the window is open (so it may be passed by one flush)."""
        if not self._open:
            return False
        prev = subscription.sent
        for seq, event in enumerate(logged.events, start=logged.first_seq):
            text = frame(logged.session_id, logged.turn_id, seq, prev, event)
            self._count(subscription, seq, text)
            prev = seq
        self._wake.set()
        return True

    def _count(self, subscription: Subscription, seq: int, text: str) -> None:
        self._append(text, 0)
        subscription.unacknowledged.append((seq, len(text)))
        self._frames += 1
        self._bytes += len(text)

    def acknowledge(self, session_id: UUID, seq: int) -> None:
        """The client has everything of the session up to `seq`."""
        subscription = self.subscriptions.get(session_id)
        if subscription is None:
            return
        owed = subscription.unacknowledged
        while owed and owed[0][0] <= seq:
            self._frames -= 1
            self._bytes -= owed.popleft()[1]
        self._wake.set()

    def add(self, subscription: Subscription) -> None:
        self.subscriptions[subscription.session_id] = subscription

    def drop(self, session_id: UUID) -> Subscription | None:
        """The session is no longer sent; what it was owed no longer counts."""
        subscription = self.subscriptions.pop(session_id, None)
        if subscription is not None:
            self._frames -= len(subscription.unacknowledged)
            self._bytes -= sum(size for _, size in subscription.unacknowledged)
            subscription.unacknowledged.clear()
            self._wake.set()
        return subscription

    async def run(self) -> None:
        """Sends for ever; cancelled when the socket closes."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready:
                text, counted = self._ready.popleft()
                await self._send(text)
                self._unread -= counted
            self._idle.set()
            while self._news:
                await self._send(self._news.pop(next(iter(self._news))))
            for subscription in list(self.subscriptions.values()):
                if subscription.behind and self._open:
                    await self._catch_up(subscription)

    async def _catch_up(self, subscription: Subscription) -> None:
        """One page of the log, deltas joined; then the others get their turn."""
        told, wanted = subscription.sent, subscription.want
        try:
            found = await self._lanes.read(
                read_events,
                subscription.session_id,
                from_seq=max(told, 1),
                limit_rows=_PAGE_ROWS,
            )
            if not found or found[0].seq != max(told, 1):
                await self._start_anew(subscription)
                return
        except SessionNotFound:
            subscription.want = told
            return
        except DatabaseError:
            logger.warning("The event log could not be read")
            await asyncio.sleep(1)
            self._wake.set()
            return
        if self.subscriptions.get(subscription.session_id) is not subscription:
            return  # it was dropped meanwhile: nobody would acknowledge its frames
        found = [logged for logged in found if logged.seq > told]
        if not found and subscription.want == wanted:
            subscription.want = told
        for logged in fold_events(found):
            text = frame(
                subscription.session_id, logged.turn_id, logged.seq, subscription.sent, logged.event
            )
            self._count(subscription, logged.seq, text)
            subscription.sent = logged.seq
        subscription.want = max(subscription.want, subscription.sent)
        self._wake.set()

    async def _start_anew(self, subscription: Subscription) -> None:
        """The client gets the session as it stands now, and goes on from there."""
        snapshot = await self._lanes.read(
            read_snapshot,
            user_id=self._user_id,
            session_id=subscription.session_id,
            limit=self._config.snapshot_rows,
        )
        if self.subscriptions.get(subscription.session_id) is subscription:
            self.put(protocol.control("snapshot", **snapshot))
            subscription.start(snapshot["seq"])
