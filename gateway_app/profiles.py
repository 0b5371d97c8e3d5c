"""How a session's agent is built, kept per process: prompt, provider, model, signature.

A choice is a model to ask: 0 is the agent's own, 1 its first fallback, and so on.
"""

import hashlib
from collections import OrderedDict
from decimal import Decimal
from typing import Final

from gateway_app.cached_agent import Profile
from gateway_app.database_threads import DatabaseLanes
from gateway_app.providers.base import Provider, Usage
from gateway_app.providers.registry import Providers
from gateway_app.services.prompts import FrozenConfig, read_frozen

_KEPT: Final = 512

Config = tuple[str, int, str, str]


class Profiles:
    """Profiles by a session's config. Sessions of one agent version share one."""

    def __init__(self, lanes: DatabaseLanes, providers: Providers) -> None:
        self._lanes = lanes
        self._providers = providers
        self._kept: OrderedDict[tuple[Config, int], tuple[Profile, Provider]] = OrderedDict()

    async def get(
        self, config: Config, frozen: FrozenConfig | None = None, choice: int = 0
    ) -> tuple[Profile, Provider]:
        """The profile and its provider. Raises ProviderError when the model cannot be had."""
        if found := self._kept.get((config, choice)):
            self._kept.move_to_end((config, choice))
            return found
        frozen = await self.frozen(config, frozen)
        asked = (frozen.model, *frozen.fallbacks)[choice]
        provider, model = await self._providers.resolve(asked)
        profile = Profile(
            config=config,
            provider=provider.name,
            model=model,
            wire=provider.wire,
            prompt=frozen.prompt,
            settings=frozen.settings,
            signature=_signature(provider, model, frozen),
            window_tokens=self._providers.facts(provider.name, model).window_tokens,
        )
        self._kept[config, choice] = (profile, provider)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return profile, provider

    async def frozen(self, config: Config, known: FrozenConfig | None = None) -> FrozenConfig:
        """What the session's agent is, read unless it is `known`."""
        if known is not None and known.config == config:
            return known
        return await self._lanes.read(read_frozen, config)

    def cost_usd(self, profile: Profile, usage: Usage) -> Decimal | None:
        """What a request to the profile's model cost, or None if that is not known."""
        return self._providers.cost_usd(profile.provider, profile.model, usage)


def _signature(provider: Provider, model: str, frozen: FrozenConfig) -> str:
    """What must be equal for two requests to share a prefix, as a hash."""
    words = (
        provider.name, provider.wire.name, model, frozen.prompt.hash, repr(frozen.settings),
        provider.fingerprint,
    )  # fmt: skip
    return hashlib.sha256("\x00".join(words).encode()).hexdigest()[:32]
