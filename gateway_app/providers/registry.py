"""The providers of one process: made when first asked for, kept until the process ends."""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

import httpx2

from gateway_app.config import GatewayConfig
from gateway_app.local_model.packages import LocalModelError, model_file
from gateway_app.providers.base import ModelInvalid, Provider, ProviderError, Usage
from gateway_app.providers.cost import cost_usd
from gateway_app.providers.failures import Wording
from gateway_app.providers.listed import ListedModels
from gateway_app.providers.model_facts import ModelFacts, model_facts
from sessions_app.sentences import say

logger: Final = logging.getLogger(__name__)
_NETWORK: Final = say("Check the network.")

LOCAL_MODEL: Final = "local:smollm2"
KNOWN: Final = ("openai", "anthropic", "local")


@dataclass(frozen=True, slots=True)
class _Access:
    """How a vendor, or a server that speaks like it, is reached; `base_url` None: the vendor's."""

    key: str | None
    base_url: str | None


class Providers:
    """Used from the event loop only. Model names are written `provider:model`."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._access = {
            "openai": _Access(config.openai_api_key, config.openai_base_url),
            "anthropic": _Access(config.anthropic_api_key, config.anthropic_base_url),
        }
        self._made: dict[str, Provider] = {}
        self._listed = ListedModels()

    def get(self, name: str) -> Provider:
        """The provider, the same object each time. Raises ModelInvalid, saying what to set."""
        provider = self._made.get(name)
        if provider is None:
            provider = self._made[name] = self._make(name)
        return provider

    async def resolve(self, model: str) -> tuple[Provider, str]:
        """The provider and its name for the model; empty means the site's default.

        `provider:` alone means that provider's default. Raises a ProviderError.
        """
        name, colon, rest = (model.strip() or self.site_default).partition(":")
        if not colon and name not in KNOWN:
            raise ModelInvalid(
                say(
                    "The model '%(name)s' names no provider. Write it as provider:model, such as"
                    " openai:%(name)s.",
                    name=name[:100],
                )
            )
        provider = self.get(name)
        return provider, rest or await provider.default_model()

    def check_default(self) -> None:
        """Raises ModelInvalid where the site's default model cannot be had as it is configured."""
        name = self.site_default.partition(":")[0]
        if name not in KNOWN:
            raise _unknown(name)
        if name in self._access:
            _check_access(name, self._access[name])

    async def warm(self) -> None:
        """What turns would wait for is done before the first one.

        Every provider that has its access is made, and the site's default model is loading.
        """
        try:
            for name in self._accessible():
                self.get(name)
            provider, _ = await self.resolve("")
            provider.start()
        except ProviderError as exc:
            facts = {"code": exc.code, "reason": str(exc)}
            logger.warning("The default model cannot be had yet", extra=facts)

    async def keep_listed(self) -> None:
        """What the servers list, and tell of their models' windows, is known and asked anew.

        No turn waits for it. Ends only when it is cancelled.
        """
        await self._listed.keep(self._accessible_providers)

    def cost_usd(self, provider: str, model: str, usage: Usage) -> Decimal | None:
        """What the request cost in US dollars, or None if that is not known."""
        return cost_usd(provider, model, usage, base_url=self._base_url(provider))

    async def listed(self) -> list[str]:
        """The models that the configured providers offer, as `provider:model`."""
        return await self._listed.of(self._accessible_providers())

    def embedded(self) -> list[str]:
        """The embedded model, if its packages are there or a server of it is named."""
        with suppress(LocalModelError):
            if not self._config.local_url:
                model_file()
            return [LOCAL_MODEL]
        return []

    def facts(self, provider: str, model: str) -> ModelFacts:
        """What is known of the model: what its server told of it comes first."""
        facts = model_facts(provider, model, self._base_url(provider))
        made = self._made.get(provider)
        told = made.window_tokens(model) if made else None
        return replace(facts, window_tokens=told) if told else facts

    async def aclose(self) -> None:
        """Every provider is closed; the next `get` makes a new one."""
        made, self._made = self._made, {}
        for provider in made.values():
            await provider.aclose()

    @property
    def site_default(self) -> str:
        """The model of agents that name none; `provider:` where the provider chooses."""
        if self._config.default_model:
            return self._config.default_model
        return next((f"{name}:" for name in self._accessible()), LOCAL_MODEL)

    def _accessible(self) -> list[str]:
        """The providers that have a key or an address, the preferred one first."""
        return [name for name, access in self._access.items() if access.key or access.base_url]

    def _accessible_providers(self) -> list[Provider]:
        """Those that can be made as they are configured."""
        providers = []
        for name in self._accessible():
            with suppress(ProviderError):
                providers.append(self.get(name))
        return providers

    def _base_url(self, name: str) -> str | None:
        """The address of the provider's server, if it is not the vendor's own."""
        access = self._access.get(name)
        return access.base_url if access else None

    def _make(self, name: str) -> Provider:
        if name == "local":
            # here, not above: the embedded model's packages are optional
            from gateway_app.providers.local import LocalProvider

            return LocalProvider(self._config)
        if name not in self._access:
            raise _unknown(name)
        access = self._access[name]
        _check_access(name, access)
        try:
            return self._make_openai(access) if name == "openai" else self._make_anthropic(access)
        except (ValueError, httpx2.InvalidURL) as exc:
            raise _no_address(name) from exc

    def _make_openai(self, access: _Access) -> Provider:
        # here, not above: an SDK takes half a second and 40 MB, which nobody else should pay
        from gateway_app.providers.openai import OpenAIProvider

        wording = Wording(mend_address=_NETWORK)
        if access.base_url:
            path = say("Check OPENAI_BASE_URL: most servers want its /v1.")
            wording = Wording(mend_path=path)
        return OpenAIProvider(
            self._config, api_key=access.key, base_url=access.base_url, wording=wording
        )

    def _make_anthropic(self, access: _Access) -> Provider:
        from gateway_app.providers.anthropic import WORDING, AnthropicProvider

        wording = replace(WORDING, mend_address=_NETWORK)
        if access.base_url:
            path = say("Check ANTHROPIC_BASE_URL: without /v1/messages.")
            wording = replace(WORDING, mend_path=path)
        return AnthropicProvider(
            self._config, api_key=access.key, base_url=access.base_url, wording=wording
        )


def _unknown(name: str) -> ModelInvalid:
    return ModelInvalid(
        say(
            "There is no model provider '%(name)s'. Known are: %(known)s.",
            name=name[:100],
            known=", ".join(KNOWN),
        )
    )


def _check_access(name: str, access: _Access) -> None:
    """Raises ModelInvalid, saying what to set, where a provider cannot be made."""
    prefix = name.upper()
    if not access.key and not access.base_url:
        raise ModelInvalid(
            say(
                "The provider %(name)s has no key. Set %(key)s, or %(address)s for a server that"
                " needs none, and restart.",
                name=name,
                key=f"{prefix}_API_KEY",
                address=f"{prefix}_BASE_URL",
            )
        )
    if access.key and not (
        access.key.isascii() and access.key.isprintable() and " " not in access.key
    ):
        raise ModelInvalid(
            say(
                "%(key)s holds characters that no key has. Set it again and restart.",
                key=f"{prefix}_API_KEY",
            )
        )


def _no_address(name: str) -> ModelInvalid:
    return ModelInvalid(
        say(
            "%(variable)s is no address. Give a full URL, such as http://HOST:PORT/v1.",
            variable=f"{name.upper()}_BASE_URL",
        )
    )
