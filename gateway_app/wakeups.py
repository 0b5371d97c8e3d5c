"""Wake-ups between processes: "the log of these sessions reaches so far", "these stand otherwise in
lists". Any may be lost.

One message a flush for the whole process, over the channel layer; a slow poll heals what is lost.
With the in-memory layer there is nobody to wake.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from channels.layers import InMemoryChannelLayer, get_channel_layer
from redis.exceptions import RedisError

from gateway_app.event_store import LoggedEvents
from gateway_app.subscriptions import Hub

logger: Final = logging.getLogger(__name__)

_GROUP: Final = "hermes.wakeups"
_PER_MESSAGE: Final = 100


class WakeUps:
    """Sends this process's wake-ups and takes those of others."""

    def __init__(self, hub: Hub, sender: str, on_listed: Callable[[UUID], None]) -> None:
        self._hub, self._sender, self._on_listed = hub, sender, on_listed
        layer = get_channel_layer()
        self._layer: Any = None if isinstance(layer, InMemoryChannelLayer) else layer
        self._pending: dict[str, int] = {}
        self._listed: set[str] = set()
        self._wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        if self._layer is not None:
            self._tasks = [
                asyncio.create_task(self._send_forever(), name="hermes-wake-ups-out"),
                asyncio.create_task(self._receive_forever(), name="hermes-wake-ups-in"),
            ]

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._layer is not None and hasattr(self._layer, "flush"):
            await self._layer.flush()

    def tell(self, batches: Iterable[LoggedEvents]) -> None:
        """Other processes will hear of these events."""
        if self._layer is None:
            return
        for logged in batches:
            self._pending[str(logged.session_id)] = logged.last_seq
        self._wanted.set()

    def tell_listed(self, session_ids: Iterable[UUID]) -> None:
        """Other processes will read again what lists say of these sessions."""
        if self._layer is not None:
            self._listed.update(map(str, session_ids))
            self._wanted.set()

    async def _send_forever(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            pending, self._pending = list(self._pending.items()), {}
            listed, self._listed = list(self._listed), set()
            for start in range(0, max(len(pending), len(listed)), _PER_MESSAGE):
                message = {
                    "type": "hermes.wakeup",
                    "from": self._sender,
                    "seqs": dict(pending[start : start + _PER_MESSAGE]),
                    "listed": listed[start : start + _PER_MESSAGE],
                }
                try:
                    await self._layer.group_send(_GROUP, message)
                except (OSError, RedisError):
                    logger.warning("A wake-up could not be sent")

    async def _receive_forever(self) -> None:
        while True:
            try:
                channel = await self._layer.new_channel()
                await self._layer.group_add(_GROUP, channel)
                while True:
                    self._take(await self._layer.receive(channel))
            except (OSError, RedisError):
                logger.warning("The channel layer is away; trying again")
                await asyncio.sleep(1)

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("from") == self._sender:
            return
        for session_id, seq in message.get("seqs", {}).items():
            self._hub.note(UUID(session_id), seq)
        for session_id in message.get("listed", ()):
            self._on_listed(UUID(session_id))
