"""A channel layer that loses messages."""

import random
from typing import Any, Final

from channels_redis.pubsub import RedisPubSubChannelLayer

LOST: Final = 0.3


class LossyChannelLayer(RedisPubSubChannelLayer):  # type: ignore[misc]
    """Redis's layer, of whose messages to groups a part never arrives."""

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        if random.random() >= LOST:
            await self._get_layer().group_send(group, message)
