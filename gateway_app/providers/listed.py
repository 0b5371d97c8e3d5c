"""The models that providers list: for people to choose from, and what is told of their windows."""

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from gateway_app.providers.base import Provider, ProviderError

KEPT_S: Final = 300.0
"""How old a list may be that somebody is shown."""
RETRIED_S: Final = 10.0
"""After a failure a provider is asked again this much later; where nobody wants to know, twice as
long after each further failure."""
MAX_LISTED: Final = 300
"""Of one provider; a hub lists thousands, and nobody chooses from a longer list."""
_NO_CHAT: Final = re.compile(
    r"embed|rerank|whisper|transcri|\btts|-tts|speech|audio|realtime|dall-e|image|sora|veo"
    r"|moderation|guard\b|babbage|davinci|instruct-0914",
    re.IGNORECASE,
)
"""What servers list beside models that chat."""


@dataclass(slots=True)
class _Listed:
    """What one provider listed last. Who asks holds the lock: others wait for the same answer."""

    names: list[str] = field(default_factory=list)
    failed: bool = False
    until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ListedModels:
    """What each provider listed last. Used from the event loop only."""

    def __init__(self) -> None:
        self._kept: dict[str, _Listed] = {}

    async def of(self, providers: Iterable[Provider]) -> list[str]:
        """`provider:model` of all of them; one that does not answer lists what it did last."""
        found = await asyncio.gather(*map(self._of, providers))
        return [name for listed in found for name in listed.names]

    async def keep(self, providers: Callable[[], Iterable[Provider]]) -> None:
        """The lists are known before anybody wants them. Ends only when it is cancelled."""
        failures = 0
        while True:
            found = await asyncio.gather(*map(self._of, providers()))
            failures = failures + 1 if any(listed.failed for listed in found) else 0
            pause_s = RETRIED_S * 2.0 ** min(failures - 1, 30) if failures else KEPT_S
            await asyncio.sleep(min(pause_s, KEPT_S))

    async def _of(self, provider: Provider) -> _Listed:
        listed = self._kept.setdefault(provider.name, _Listed())
        async with listed.lock:
            if monotonic() >= listed.until:
                await _ask(provider, listed)
        return listed


async def _ask(provider: Provider, listed: _Listed) -> None:
    """`listed` is what the provider lists now, or as it was; the provider itself keeps windows."""
    try:
        models = await provider.models()
    except ProviderError:
        listed.failed = True
    else:
        listed.failed = False
        chat = [model for model in models if not _NO_CHAT.search(model)]
        listed.names = [f"{provider.name}:{model}" for model in chat[:MAX_LISTED]]
    listed.until = monotonic() + (RETRIED_S if listed.failed else KEPT_S)
