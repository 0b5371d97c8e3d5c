"""The models that people may choose from: asked for once in a while, and never waited for long."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.providers import listed
from gateway_app.providers.registry import Providers
from tests.fake_model_server import FakeModelServer, Gate, Script


@pytest.fixture
async def providers(server: FakeModelServer) -> AsyncIterator[Providers]:
    """Both kinds of provider, of one server."""
    made = Providers(
        GatewayConfig(openai_base_url=server.url, anthropic_base_url=server.url, max_retries=0)
    )
    yield made
    await made.aclose()


async def test_it_lists_what_chats_of_every_provider_once(
    providers: Providers, server: FakeModelServer
) -> None:
    server.models = ["gpt-5", "text-embedding-3", "whisper-1", "claude-x", "tts-1", "qwen3:8b"]
    chat = ["gpt-5", "claude-x", "qwen3:8b"]
    wanted = [f"{name}:{model}" for name in ("openai", "anthropic") for model in chat]
    assert await providers.listed() == wanted
    assert await providers.listed() == wanted
    assert server.model_lists == 2


async def test_it_asks_once_for_all_who_want_to_know(
    providers: Providers, server: FakeModelServer
) -> None:
    held = server.models_held = Gate()
    asking = [asyncio.create_task(providers.listed()) for _ in range(3)]
    await server.listed.wait()
    asking.pop().cancel()
    held.release()
    first, second = await asyncio.gather(*asking)
    assert first == second == ["openai:fake-1", "anthropic:fake-1"]
    assert server.model_lists == 2


async def test_it_lists_nothing_of_a_server_that_fails_and_asks_again(
    providers: Providers, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed, "RETRIED_S", 0)
    server.models_answer = Script(status=500)
    assert await providers.listed() == []
    server.models_answer = None
    assert await providers.listed() == ["openai:fake-1", "anthropic:fake-1"]


async def test_it_keeps_what_a_server_listed_before_it_failed(
    providers: Providers, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed, "KEPT_S", 0)
    wanted = ["openai:fake-1", "anthropic:fake-1"]
    assert await providers.listed() == wanted
    server.models_answer = Script(status=503)
    assert await providers.listed() == wanted


async def test_it_lists_no_more_than_anybody_reads(
    providers: Providers, server: FakeModelServer
) -> None:
    server.models = [f"model-{number}" for number in range(1000)]
    assert len(await providers.listed()) == 2 * listed.MAX_LISTED


async def test_a_wrong_key_lists_nothing() -> None:
    made = Providers(GatewayConfig(openai_api_key="sk é"))
    assert await made.listed() == []
