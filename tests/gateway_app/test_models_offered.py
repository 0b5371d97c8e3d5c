"""Which models a client learns of, how full one is, and what happens when it is."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.cached_agent import Profile
from gateway_app.context_window import CHARACTERS_PER_TOKEN, overfull, tokens_at_least
from gateway_app.host import GatewayHost
from gateway_app.local_model.engine import WINDOW_TOKENS
from gateway_app.models import Turn
from gateway_app.providers.base import Prompt, RequestSettings
from gateway_app.providers.model_facts import model_facts
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.services.agents import create_agent
from sessions_app.models import Message, Session
from tests.fake_model_server import FakeModelServer, Script
from tests.gate import Gate
from tests.model_scripts import ToolCall
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


def agent(slug: str, model: str) -> None:
    create_agent(
        slug=slug, name=slug.title(), model=model, system_prompt="", temperature=None,
        max_output_tokens=None, created_by_id=None,
    )  # fmt: skip


async def models(client: SocketClient) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in (await client.ok("model.list"))["models"]}


def test_it_knows_names_and_windows_of_models_and_makes_none_up() -> None:
    local = model_facts("local", "smollm2")
    assert (local.name, local.window_tokens) == ("SmolLM2 135M", WINDOW_TOKENS)
    assert model_facts("openai", "gpt-5-mini").window_tokens == 400_000
    unknown = model_facts("openai", "home-made")
    assert (unknown.name, unknown.window_tokens) == ("home-made", None)
    elsewhere = model_facts("openai", "gpt-5-mini", "http://127.0.0.1:1/v1")
    assert (elsewhere.name, elsewhere.window_tokens) == ("gpt-5-mini", None)


async def test_it_lists_the_default_first_and_the_agents_models(
    gateway: GatewayHost, owner: User
) -> None:
    await sync_to_async(agent)("coder", "local:smollm2")
    await sync_to_async(agent)("writer", "")
    async with SocketClient(owner) as client:
        listed = await models(client)
        assert next(iter(listed)) == "openai:fake-1"
        assert listed["openai:fake-1"]["default"] is True
        assert "contextWindow" not in listed["openai:fake-1"]
        assert listed["local:smollm2"] == {
            "id": "local:smollm2", "name": "SmolLM2 135M", "provider": "local",
            "default": False, "contextWindow": WINDOW_TOKENS,
        }  # fmt: skip
        hello = await client.ok("hello", protocol="hermes.v1")
        named = {one["slug"]: one["model"] for one in hello["agents"]}
        assert (named["coder"], named["writer"], named["main"]) == ("local:smollm2", "", "")


@pytest.fixture
def held(model: FakeModelServer) -> Iterator[Gate]:
    """The model lists nothing, from the beginning, until this is released."""
    gate = model.models_held = Gate()
    yield gate
    gate.release()


async def test_it_sends_while_a_provider_does_not_list_its_models(
    held: Gate, gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    """The gateway itself has asked for the list, and nobody asks for it again meanwhile."""
    await model.listed.wait()
    async with SocketClient(owner) as client:
        for name in ("m1", "m2"):
            await client.send({"id": name, "type": "model.list"})
        sent = await client.say("Hi")
        await client.finished(sent["turnId"])
        assert not {"m1", "m2"} & client.replies.keys()
        held.release()
        await client.until(lambda: {"m1", "m2"} <= client.replies.keys())
        assert model.model_lists == 1
        offered = [client.replies[name]["result"] for name in ("m1", "m2")]
        assert offered[0] == offered[1]
        assert "openai:fake-1" in {one["id"] for one in offered[0]["models"]}


async def test_it_opens_a_session_with_the_model_that_the_first_message_asks_for(
    gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    first = {"clientMessageId": "a", "content": "Hi"}
    async with SocketClient(owner) as client:
        sent = await client.ok("message.send", model="openai:fake-2", **first)
        asked = await model.request(0)
        assert asked.json["model"] == "fake-2"
        session = await sync_to_async(Session.objects.get)(pk=sent["sessionId"])
        assert session.model == "openai:fake-2"
        other = await client.refused("message.send", model="openai:fake-3", **first)
        assert other["code"] == "idempotency_mismatch"
        for number, name in enumerate(("fake-2", "openai:", ":fake-2")):
            error = await client.refused(
                "message.send", clientMessageId=str(number), content="Hi", model=name
            )
            assert error["code"] == "invalid_frame"


async def test_it_tells_how_full_the_window_was_at_the_last_request(
    gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    model.script(
        Script(tokens=(), tool_calls=[ToolCall("call_1", "none")], usage={"prompt_tokens": 100}),
        Script(usage={"prompt_tokens": 130, "completion_tokens": 2}),
    )
    async with SocketClient(owner) as client:
        sent = await client.say("Hi")
        finished = await client.finished(sent["turnId"])
        assert finished["metadata"]["hermes"]["contextTokens"] == 130
        turn = await sync_to_async(Turn.objects.get)(pk=sent["turnId"])
        assert (turn.context_tokens, turn.input_tokens) == (130, 230)
        history = await client.ok("session.history", sessionId=sent["sessionId"])
        assert history["turns"][0]["contextTokens"] == 130


def profile(window_tokens: int | None) -> Profile:
    return Profile(
        config=("main", 1, "", "x"), provider="openai", model="m", wire=OpenAIChatWire(),
        prompt=Prompt("x", "Be brief."), settings=RequestSettings(), signature="s",
        window_tokens=window_tokens,
    )  # fmt: skip


def test_it_refuses_what_cannot_fit_and_says_what_to_do() -> None:
    pieces = ["x" * CHARACTERS_PER_TOKEN * 200]
    assert tokens_at_least(pieces) == 200
    assert overfull(profile(None), pieces) is None
    assert overfull(profile(205), pieces) is None
    refused = str(overfull(profile(150), pieces))
    assert re.search(r"more than 201 tokens.* holds 150\..*new chat", refused)


@pytest.mark.parametrize(("text", "tokens"), [("Would that also hold in winter? " * 50, 351)])
def test_it_refuses_nothing_that_would_have_fitted(text: str, tokens: int) -> None:
    """`tokens` is what a real tokenizer counts."""
    assert tokens_at_least([text]) <= tokens


async def test_it_refuses_before_the_call_what_the_listed_window_cannot_hold(
    gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    model.windows = {"fake-1": 500}
    async with SocketClient(owner) as client:
        assert (await models(client))["openai:fake-1"]["contextWindow"] == 500
        first = await client.say("Short enough")
        await client.finished(first["turnId"])
        much = "x" * CHARACTERS_PER_TOKEN * 501
        sent = await client.say(much, first["sessionId"])
        failed = await client.finished(sent["turnId"])
        assert (failed["type"], failed["code"]) == ("RUN_ERROR", "context_full")
        assert "Start a new chat" in failed["message"]
        assert len(model.requests) == 1
        await client.ok("session.update", sessionId=first["sessionId"], model="openai:fake-2")
        again = await client.ok(
            "turn.retry", sessionId=first["sessionId"], turnId=sent["turnId"], clientMessageId="r"
        )
        assert (await client.finished(again["turnId"]))["type"] == "RUN_FINISHED"


@pytest.mark.parametrize(("cold", "verdict"), [(False, "catch_up"), (True, "reload")])
async def test_it_takes_no_refused_request_for_the_last_one(
    gateway: GatewayHost, owner: User, model: FakeModelServer, cold: bool, verdict: str
) -> None:
    model.windows = {"fake-1": 500}
    async with SocketClient(owner) as client:
        await models(client)
        first = await client.say("Short enough")
        await client.finished(first["turnId"])
        session_id = first["sessionId"]
        sent = await client.say("x" * CHARACTERS_PER_TOKEN * 501, session_id)
        assert (await client.finished(sent["turnId"]))["code"] == "context_full"
        refused = await sync_to_async(Turn.objects.get)(pk=sent["turnId"])
        assert (refused.verdict, refused.sent_revision) == ("", None)
        await sync_to_async(Message.objects.filter(turn_id=refused.pk).update)(state="hidden")
        if cold:
            assert gateway.cache.evict(UUID(session_id))
        last = await client.say("Now it fits", session_id)
        finished = await client.finished(last["turnId"])
        assert finished["metadata"]["hermes"]["cache"]["verdict"] == verdict
        requests = [one.json["messages"] for one in model.requests]
        assert requests[1][: len(requests[0])] == requests[0]
