"""A fake model server and providers that speak to it."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.providers.anthropic import AnthropicProvider
from gateway_app.providers.http import HTTPProvider
from gateway_app.providers.openai import OpenAIProvider
from tests.fake_model_server import FakeModelServer

KEY = "5ecret5ecret5ecretKey"
"""Looks like no vendor's keys: it must be hidden because it is the key."""
SESSION = UUID("01890000-0000-7000-8000-000000000001")

MakeProvider = Callable[..., OpenAIProvider]
MakeAnthropic = Callable[..., AnthropicProvider]
MakeAny = Callable[..., HTTPProvider]


@pytest.fixture
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


KINDS: dict[str, type[OpenAIProvider] | type[AnthropicProvider]] = {
    "openai": OpenAIProvider,
    "anthropic": AnthropicProvider,
}


@pytest.fixture
async def make_any(server: FakeModelServer) -> AsyncIterator[MakeAny]:
    """Makes providers of the fake server; keywords are fields of GatewayConfig, or `base_url`."""
    made: list[HTTPProvider] = []

    def make(
        kind: str, *, base_url: str | None = None, api_key: str | None = KEY, **config: float
    ) -> HTTPProvider:
        provider = KINDS[kind](
            replace(GatewayConfig(), **config),  # type: ignore[arg-type]  # the caller's fields
            api_key=api_key,
            base_url=base_url or server.url,
            backoff_s=0.001,
        )
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.aclose()


@pytest.fixture
def make_provider(make_any: MakeAny) -> MakeProvider:
    return partial(make_any, "openai")  # type: ignore[return-value]  # that kind's class


@pytest.fixture
def make_anthropic(make_any: MakeAny) -> MakeAnthropic:
    return partial(make_any, "anthropic")  # type: ignore[return-value]  # that kind's class


@pytest.fixture(params=sorted(KINDS))
def make_each(request: pytest.FixtureRequest, make_any: MakeAny) -> MakeAny:
    """As `make_any`, once for each kind of provider, which the caller does not name."""
    return partial(make_any, request.param)
