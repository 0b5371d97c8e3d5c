"""The models that providers list, for people to choose from; asked for once in a while."""

import asyncio
import re
from collections.abc import Iterable
from time import monotonic
from typing import Final

from gateway_app.providers.base import Provider, ProviderError

KEPT_S: Final = 300.0
RETRIED_S: Final = 30.0
"""After a failure a provider is asked again this much later."""
MAX_LISTED: Final = 300
"""Of one provider; a hub lists thousands, and nobody chooses from a longer list."""
_NO_CHAT: Final = re.compile(
    r"embed|rerank|whisper|transcri|\btts|-tts|speech|audio|realtime|dall-e|image|sora|veo"
    r"|moderation|guard\b|babbage|davinci|instruct-0914",
    re.IGNORECASE,
)
"""What servers list beside models that chat."""


class ListedModels:
    """What each provider listed last. Used from the event loop only."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, list[str]]] = {}

    async def of(self, providers: Iterable[Provider]) -> list[str]:
        """`provider:model` of all of them; one that does not answer lists what it did last."""
        found = await asyncio.gather(*(self._of(provider) for provider in providers))
        return [name for names in found for name in names]

    async def _of(self, provider: Provider) -> list[str]:
        until, names = self._kept.get(provider.name, (0.0, []))
        if monotonic() < until:
            return names
        kept_s = KEPT_S
        try:
            models = await provider.models()
            chat = [model for model in models if not _NO_CHAT.search(model)]
            names = [f"{provider.name}:{model}" for model in chat[:MAX_LISTED]]
        except ProviderError:
            kept_s = RETRIED_S
        self._kept[provider.name] = (monotonic() + kept_s, names)
        return names
