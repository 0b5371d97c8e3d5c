"""What a model's server tells of its window is known before anybody asked for the models."""

import asyncio
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.context_window import CHARACTERS_PER_TOKEN
from gateway_app.host import GatewayHost
from gateway_app.providers import listed
from gateway_app.providers.registry import Providers
from tests.fake_model_server import FakeModelServer, Script
from tests.gate import WAIT_S, Gate
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

TOO_MUCH = "x" * CHARACTERS_PER_TOKEN * 501


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    """A model with a small window; its list of models waits for `models_held`."""
    with FakeModelServer() as server:
        server.windows = {"fake-1": 500}
        held = server.models_held = Gate()
        yield server
        held.release()


async def told(providers: Providers, wanted: int) -> None:
    """Returns once the model's window is known to be `wanted`."""
    async with asyncio.timeout(WAIT_S):
        while providers.facts("openai", "fake-1").window_tokens != wanted:  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.005)


async def test_the_first_turn_knows_the_window(
    gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    assert model.models_held is not None
    model.models_held.release()
    await told(gateway.providers, 500)
    async with SocketClient(owner) as client:
        sent = await client.say(TOO_MUCH)
        failed = await client.finished(sent["turnId"])
    assert failed["code"] == "context_full"
    assert model.requests == []
    assert model.model_lists == 1


async def test_no_turn_waits_for_the_list_of_models(
    gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    await model.listed.wait()
    async with SocketClient(owner) as client:
        sent = await client.say(TOO_MUCH)
        assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
    assert gateway.providers.facts("openai", "fake-1").window_tokens is None


async def test_it_asks_again_after_a_failure_and_after_a_while(
    config: GatewayConfig, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed, "RETRIED_S", 0.001)
    monkeypatch.setattr(listed, "KEPT_S", 0.002)
    model.models_held, model.models_answer = None, Script(status=500)
    providers = Providers(config)
    keeping = asyncio.create_task(providers.keep_listed())
    try:
        await model.listed.wait()
        model.models_answer = None
        await told(providers, 500)
        model.windows = {"fake-1": 700}
        await told(providers, 700)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await providers.aclose()
