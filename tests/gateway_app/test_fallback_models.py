"""Another model answers when the agent's own cannot be had, and takes nothing away from it."""

import itertools
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Agent, Turn
from gateway_app.providers.anthropic_wire import CACHE_HINT
from gateway_app.services.agents import save_agent_version
from gateway_app.services.presence import ask_eviction
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

CLAUDE = "anthropic:claude-sonnet-5-5"


@pytest.fixture
def spare() -> Iterator[FakeModelServer]:
    """The fallback's server."""
    with FakeModelServer() as server:
        yield server


@pytest.fixture
def tunables() -> dict[str, float]:
    """What a test turns; it parametrizes them."""
    return {}


@pytest.fixture
def config(
    config: GatewayConfig, spare: FakeModelServer, tunables: dict[str, Any]
) -> GatewayConfig:
    return replace(
        config,
        **tunables,
        anthropic_api_key="sk-ant-test",
        anthropic_base_url=spare.url,
        first_token_timeout_s=2,
    )


@pytest.fixture(autouse=True)
def agent(transactional_db: None) -> Agent:
    """The default agent, with two fallbacks."""
    main = Agent.objects.get(is_default=True)
    save_agent_version(
        agent=main, model="openai:fake-1", fallback_models=f"{CLAUDE}\nopenai:fake-2",
        system_prompt="You are Hermes.", temperature=None, max_output_tokens=None,
        created_by_id=None,
    )  # fmt: skip
    return main


@sync_to_async
def turn(turn_id: str) -> Turn:
    return Turn.objects.get(pk=turn_id)


@pytest.mark.parametrize(
    "script",
    [
        Script(status=500),
        Script(status=529),
        Script(status=429),
        Script(cut_at_byte=0),
        Script(raw=[b": nothing yet\n\n"]),
        Script(headers_gate=Gate()),
    ],
)
async def test_another_model_answers_when_the_own_one_cannot_be_had(
    gateway: GatewayHost,
    model: FakeModelServer,
    spare: FakeModelServer,
    owner: User,
    script: Script,
) -> None:
    model.script(script)
    spare.script(Script(tokens=["From ", "Claude"]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        finished = await client.finished(sent["turnId"])
        assert client.text(sent["turnId"]) == "From Claude"
        await verified(client, sent["sessionId"])
    facts = finished["metadata"]["hermes"]
    assert (facts["model"], facts["fallbackFrom"]) == (CLAUDE, "openai:fake-1")
    assert facts["cache"]["verdict"] == "new"
    [usage] = finished["usage"]
    assert (usage["provider"], usage["model"]) == ("anthropic", "claude-sonnet-5-5")
    stored = await turn(sent["turnId"])
    assert (stored.model, stored.fallback_from) == (CLAUDE, "openai:fake-1")
    assert len(spare.requests) == 1


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script(status=401), "model_auth"),
        (Script(status=400, error={"message": "bad"}), "model_invalid"),
        (Script(status=404), "model_invalid"),
        (Script(tokens=["Half ", "a"], cut_at_byte=700), "model_unavailable"),
    ],
)
async def test_no_other_model_hides_what_must_be_mended_or_was_begun(
    gateway: GatewayHost,
    model: FakeModelServer,
    spare: FakeModelServer,
    owner: User,
    script: Script,
    code: str,
) -> None:
    model.script(script)
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        failed = await client.finished(sent["turnId"])
    assert failed["code"] == code
    assert spare.requests == []


async def test_the_next_fallback_is_asked_when_one_fails_whatever_for(
    gateway: GatewayHost, model: FakeModelServer, spare: FakeModelServer, owner: User
) -> None:
    model.script(Script(status=503), Script(tokens=["From the second"]))
    spare.script(Script(status=401))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        finished = await client.finished(sent["turnId"])
        assert client.text(sent["turnId"]) == "From the second"
    assert [record.json["model"] for record in model.requests] == ["fake-1", "fake-2"]
    facts = finished["metadata"]["hermes"]
    assert (facts["model"], facts["fallbackFrom"]) == ("openai:fake-2", "openai:fake-1")


async def test_it_tells_the_first_error_when_nobody_answers(
    gateway: GatewayHost, model: FakeModelServer, spare: FakeModelServer, owner: User
) -> None:
    model.default, spare.default = Script(status=429), Script(status=500)
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        failed = await client.finished(sent["turnId"])
    assert failed["code"] == "model_rate_limited"
    assert failed["message"].endswith("No fallback model could answer either.")
    assert (len(model.requests), len(spare.requests)) == (2, 1)


async def test_a_fallback_leaves_the_own_models_prefix_alone(
    gateway: GatewayHost, model: FakeModelServer, spare: FakeModelServer, owner: User
) -> None:
    """Each wire has pieces and a record of its own, and both prefixes only grow (I7)."""
    async with SocketClient(owner) as client:
        first = await client.say("one")
        await client.finished(first["turnId"])
        session_id, verdicts = first["sessionId"], []
        for number, failing in enumerate([True, False, True, True, False]):
            if failing:
                model.script(Script(status=503))
            sent = await client.say(f"more {number}", session_id)
            facts = (await client.finished(sent["turnId"]))["metadata"]["hermes"]
            assert ("fallbackFrom" in facts) is failing
            verdicts.append(facts["cache"]["verdict"])
    assert verdicts == ["reuse"] * 5
    own = [record.body.decode().removesuffix("]}") for record in model.requests]
    others = [
        record.body.decode().replace(CACHE_HINT, "").removesuffix("]}]}")
        for record in spare.requests
    ]
    assert (len(own), len(others)) == (6, 3)
    for bodies in (own, others):
        for before, after in itertools.pairwise(bodies):
            assert after.startswith(before)


async def test_a_cold_process_knows_the_own_models_last_request(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """What the fallback was sent is no record of the session: that would look like a rebuild."""
    model.script(Script(tokens=["One"]), Script(status=503), Script(tokens=["Three"]))
    async with SocketClient(owner) as client:
        sent = await client.say("one")
        for text in ("two", "three"):
            await client.finished(sent["turnId"])
            assert await gateway.runner.wait_idle(60)
            gateway.cache.evict_idle()
            sent = await client.say(text, sent["sessionId"])
        facts = (await client.finished(sent["turnId"]))["metadata"]["hermes"]
    assert facts["cache"]["verdict"] == "reload"


async def test_a_fallback_answers_the_rest_of_its_turn(
    gateway: GatewayHost, model: FakeModelServer, spare: FakeModelServer, owner: User
) -> None:
    model.script(Script(status=503))
    spare.script(
        Script(reasoning=["Hm"], tool_calls=[ToolCall("toolu_1", "look")], tokens=[]),
        Script(tokens=["Nothing there"]),
    )
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        await client.finished(sent["turnId"])
        assert client.text(sent["turnId"]) == "Nothing there"
        await verified(client, sent["sessionId"])
    assert (len(model.requests), len(spare.requests)) == (1, 2)
    again = spare.requests[1].messages
    assert again[1]["content"][0] == {
        "type": "thinking", "thinking": "Hm", "signature": "c2lnbmVk+/==",
    }  # fmt: skip
    assert again[2]["content"][0]["tool_use_id"] == "toolu_1"
    before = spare.requests[0].body.decode().replace(CACHE_HINT, "").removesuffix("]}]}")
    assert spare.requests[1].body.decode().replace(CACHE_HINT, "").startswith(before)


async def test_it_tries_the_own_model_again_in_the_next_turn(
    gateway: GatewayHost, model: FakeModelServer, spare: FakeModelServer, owner: User
) -> None:
    """Case G98: and in a new conversation."""
    model.script(Script(status=503), Script(tokens=["Back"]))
    async with SocketClient(owner) as client:
        first = await client.say("one")
        await client.finished(first["turnId"])
        second = await client.say("two", first["sessionId"])
        facts = (await client.finished(second["turnId"]))["metadata"]["hermes"]
        assert client.text(second["turnId"]) == "Back"
        elsewhere = await client.say("another conversation")
        others = (await client.finished(elsewhere["turnId"]))["metadata"]["hermes"]
    for found in (facts, others):
        assert found["model"] == "openai:fake-1"
        assert "fallbackFrom" not in found


@pytest.mark.parametrize(
    ("order", "tunables"),
    [(False, {"cache_idle_s": 0, "housekeeping_s": 0.05}), (True, {"presence_s": 0.05})],
    ids=["age", "order"],
)
async def test_it_drops_the_agents_of_fallbacks_once_they_are_idle(
    gateway: GatewayHost, model: FakeModelServer, spare: FakeModelServer, owner: User, order: bool
) -> None:
    """Case G91: by age or by an operator's order, and never while they run."""
    gate, gone, cache = Gate(), Gate(), gateway.runner.fallback_cache
    model.script(Script(status=503))
    spare.script(Script(tokens=["one ", "two"], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        agent = cache.get(UUID(sent["sessionId"]))
        assert agent is not None
        assert cache.evict_idle() == 0
        weakref.finalize(agent, gone.release)
        del agent
        gate.release()
        await client.finished(sent["turnId"])
    assert await gateway.runner.wait_idle(60)
    if order:
        assert await sync_to_async(ask_eviction)(owner=gateway.lease_owner)
    await gone.wait()
    assert len(cache) == 0
