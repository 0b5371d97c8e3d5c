"""A fake model server and providers that speak to it."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.providers.openai import OpenAIProvider
from tests.fake_model_server import FakeModelServer

KEY = "5ecret5ecret5ecretKey"
"""Looks like no vendor's keys: it must be hidden because it is the key."""
SESSION = UUID("01890000-0000-7000-8000-000000000001")

MakeProvider = Callable[..., OpenAIProvider]


@pytest.fixture
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


@pytest.fixture
async def make_provider(server: FakeModelServer) -> AsyncIterator[MakeProvider]:
    """Makes providers of the fake server; keywords are fields of GatewayConfig, or `base_url`."""
    made: list[OpenAIProvider] = []

    def make(
        *, base_url: str | None = None, api_key: str | None = KEY, **config: float
    ) -> OpenAIProvider:
        provider = OpenAIProvider(
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
