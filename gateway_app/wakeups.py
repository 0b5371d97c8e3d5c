"""News between processes: what to look at, never what is there. Any of it may be lost.

A wake-up says which sessions have new events or stand otherwise in lists, which run is to stop,
that a turn waits for somebody to run it, or whose credentials changed. Whoever hears it looks into
the database; slow polls heal what was not heard. With the in-memory layer there is nobody to wake.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer
from redis.exceptions import RedisError

from gateway_app.event_store import LoggedEvents
from gateway_app.tasks import end_tasks

logger: Final = logging.getLogger(__name__)

_GROUP: Final = "hermes.wakeups"
_PER_MESSAGE: Final = 100
_PATIENCE_S: Final = 5
_REST_S: Final = 1


@dataclass(frozen=True, slots=True)
class Ears:
    """What a process does with the news of others; each is called on its event loop."""

    events: Callable[[UUID, int], object]
    """(session, the last seq of its log)"""
    stop: Callable[[UUID, int], object]
    """(turn, run generation)"""
    work: Callable[[], object]
    revoked: Callable[[int], object]
    """(user id)"""
    listed: Callable[[UUID], object]
    """(session)"""


def send_revoked(user_id: int) -> None:
    """The one wake-up of a process that has no gateway. Waits for it, not for anybody's answer."""
    layer: Any = get_channel_layer()
    if isinstance(layer, InMemoryChannelLayer):
        return

    async def send() -> None:
        async with asyncio.timeout(_PATIENCE_S):
            await layer.group_send(_GROUP, {"type": "hermes.wakeup", "revoked": [user_id]})
        await layer.flush()

    try:
        async_to_sync(send)()
    except (OSError, RedisError):
        logger.warning("A wake-up could not be sent")


class WakeUps:
    """Sends this process's wake-ups and takes those of others."""

    def __init__(self, ears: Ears, sender: str) -> None:
        self._ears, self._sender = ears, sender
        layer = get_channel_layer()
        self._layer: Any = None if isinstance(layer, InMemoryChannelLayer) else layer
        self._seqs: dict[str, int] = {}
        self._listed: set[str] = set()
        self._stops: list[tuple[str, int]] = []
        self._revoked: set[int] = set()
        self._work = False
        self._closing = False
        self._wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        if self._layer is not None:
            self._tasks = [
                asyncio.create_task(self._send_until_closed(), name="hermes-wake-ups-out"),
                asyncio.create_task(self._receive_forever(), name="hermes-wake-ups-in"),
            ]

    async def aclose(self) -> None:
        """What was told last is sent; then nothing is sent or heard any more."""
        self._closing = True
        self._wanted.set()
        if self._tasks:
            await asyncio.wait(self._tasks[:1], timeout=_PATIENCE_S)
        await end_tasks(self._tasks)
        if self._layer is not None and hasattr(self._layer, "flush"):
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    await self._layer.flush()
            except (OSError, RedisError):
                logger.warning("The channel layer did not let go")

    def tell_events(self, batches: Iterable[LoggedEvents]) -> None:
        """Other processes will hear of these events."""
        if self._layer is not None:
            for logged in batches:
                self._seqs[str(logged.session_id)] = logged.last_seq
            self._wanted.set()

    def tell_listed(self, session_ids: Iterable[UUID]) -> None:
        """Other processes will read again what lists say of these sessions."""
        if self._layer is not None:
            self._listed.update(map(str, session_ids))
            self._wanted.set()

    def tell_stop(self, turn_id: UUID, generation: int) -> None:
        """Whoever has this run will read its orders at once."""
        if self._layer is not None:
            self._stops.append((str(turn_id), generation))
            self._wanted.set()

    def tell_work(self) -> None:
        """Whoever runs turns will look for those that wait or were left."""
        if self._layer is not None:
            self._work = True
            self._wanted.set()

    def tell_revoked(self, user_id: int) -> None:
        """Every process will check this person's sockets at once."""
        if self._layer is not None:
            self._revoked.add(user_id)
            self._wanted.set()

    async def _send_until_closed(self) -> None:
        last = False
        while not last:
            await self._wanted.wait()
            self._wanted.clear()
            last = self._closing
            await self._send()

    async def _send(self) -> None:
        """All that waits to be told; whoever does not take one message takes no further ones."""
        for message in self._messages():
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    await self._layer.group_send(_GROUP, message)
            except (OSError, RedisError):
                logger.warning("A wake-up could not be sent")
                return

    def _messages(self) -> list[dict[str, Any]]:
        """Everything that waits to be told, what is urgent first, in small pieces."""
        waiting: dict[str, Iterable[Any]] = {
            "work": [True] if self._work else [],
            "stops": self._stops,
            "revoked": sorted(self._revoked),
            "listed": self._listed,
            "seqs": self._seqs.items(),
        }
        told = [(kind, one) for kind, all_of_it in waiting.items() for one in all_of_it]
        self._work, self._stops, self._revoked = False, [], set()
        self._listed, self._seqs = set(), {}
        messages = []
        for start in range(0, len(told), _PER_MESSAGE):
            news: dict[str, Any] = {}
            for kind, one in told[start : start + _PER_MESSAGE]:
                news.setdefault(kind, []).append(one)
            seqs = {"seqs": dict(news["seqs"])} if "seqs" in news else {}
            messages.append({"type": "hermes.wakeup", "from": self._sender, **news, **seqs})
        return messages

    async def _receive_forever(self) -> None:
        while True:
            try:
                channel = await self._layer.new_channel()
                await self._layer.group_add(_GROUP, channel)
                while True:
                    self._take(await self._layer.receive(channel))
            except (OSError, RedisError):
                logger.warning("The channel layer is away; trying again")
                await asyncio.sleep(_REST_S)

    def _take(self, message: dict[str, Any]) -> None:
        """One message's news. Another version's, that cannot be read, make nobody deaf."""
        try:
            self._tell(message)
        except Exception:
            logger.exception("A wake-up could not be taken")

    def _tell(self, message: dict[str, Any]) -> None:
        if message.get("from") == self._sender:
            return
        for session_id, seq in message.get("seqs", {}).items():
            self._ears.events(UUID(session_id), seq)
        for session_id in message.get("listed", ()):
            self._ears.listed(UUID(session_id))
        for turn_id, generation in message.get("stops", ()):
            self._ears.stop(UUID(turn_id), generation)
        for user_id in message.get("revoked", ()):
            self._ears.revoked(user_id)
        if message.get("work"):
            self._ears.work()
