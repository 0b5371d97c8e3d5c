"""Whole turns with Anthropic's wire: what is shown, kept, sent back, cached and paid."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from gateway_app.providers.anthropic_wire import CACHE_HINT
from gateway_app.providers.call_ids import STRICT, sent_call_id
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

THINKING = {"type": "thinking", "thinking": "I see", "signature": "c2lnbmVk+/=="}
REDACTED = {"type": "redacted_thinking", "data": "c2VjcmV0"}


@pytest.fixture
def config(config: GatewayConfig, model: FakeModelServer) -> GatewayConfig:
    return replace(
        config,
        default_model="anthropic:claude-sonnet-5-5",
        anthropic_api_key="sk-ant-test",
        anthropic_base_url=model.url,
    )


def prefix(model: FakeModelServer, number: int) -> str:
    """A request without its cache hints and the brackets that close its last message."""
    body = model.requests[number].body.decode().replace(CACHE_HINT, "")
    assert body.endswith("]}]}")
    return body.removesuffix("]}]}")


@sync_to_async
def answers(session_id: str) -> list[Message]:
    found = Message.objects.filter(session_id=session_id, kind="assistant")
    return list(found.order_by("position"))


@sync_to_async
def turn(turn_id: str) -> Turn:
    return Turn.objects.get(pk=turn_id)


async def test_it_sends_signed_reasoning_back_as_it_came(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Within the turn, where the server demands it, and in every later one."""
    model.script(
        Script(
            reasoning=["I ", "see"],
            redacted=["c2VjcmV0"],
            tokens=["One moment"],
            tool_calls=[ToolCall("toolu_1", "look", ['{"at": ', "1e22}"]), ToolCall("t2", "look")],
        ),
        Script(reasoning=["I see"], tokens=["It is ", "blue"]),
    )
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        await client.finished(sent["turnId"])
        assert client.text(sent["turnId"]) == "One momentIt is blue"
        await verified(client, sent["sessionId"])
        again = await client.say("sure?", sent["sessionId"])
        facts = (await client.finished(again["turnId"]))["metadata"]["hermes"]
    assert facts["cache"]["verdict"] == "reuse"
    first, second = model.requests[1].messages, model.requests[2].messages
    assert first[1]["content"] == [
        THINKING,
        REDACTED,
        {"type": "text", "text": "One moment"},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1e22}},
        {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
    ]
    results = first[2]["content"]
    assert [block["tool_use_id"] for block in results] == ["toolu_1", "t2"]
    assert all(block["is_error"] for block in results)
    assert second[3]["content"] == [THINKING, {"type": "text", "text": "It is blue"}]
    for before, after in pairwise(range(3)):
        assert prefix(model, after).startswith(prefix(model, before))


async def test_people_see_reasoning_without_its_proof(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(reasoning=["I see"], redacted=["c2VjcmV0"], tokens=["Yes"]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        history = await client.ok("session.history", sessionId=sent["sessionId"])
        seen = str([client.events(), history])
    assert "I see" in seen
    assert "c2lnbmVk" not in seen
    assert "c2VjcmV0" not in seen
    [answer] = await answers(sent["sessionId"])
    assert [part["type"] for part in answer.sent_parts] == [
        "reasoning", "redacted_reasoning", "text",
    ]  # fmt: skip


async def test_a_plain_answer_stores_nothing_twice(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
    [answer] = await answers(sent["sessionId"])
    assert answer.sent_parts is None


async def test_a_stopped_answer_goes_back_without_reasoning(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(reasoning=["I see"], tokens=["Well ", "then"], gates={2: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        await client.ok("turn.stop", turnId=sent["turnId"])
        await client.finished(sent["turnId"])
        gate.release()
        again = await client.say("go on", sent["sessionId"])
        await client.finished(again["turnId"])
    assert model.requests[1].messages[1]["content"] == [{"type": "text", "text": "Well "}]


async def test_a_cold_process_sends_the_same_bytes(
    gateway: GatewayHost, model: FakeModelServer, owner: User, config: GatewayConfig
) -> None:
    model.script(Script(reasoning=["I see"], tokens=["Yes"]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
    assert await gateway.runner.wait_idle(60)
    gateway.cache.evict_idle()
    async with SocketClient(owner) as client:
        await client.ok("session.subscribe", sessionId=sent["sessionId"])
        again = await client.say("more", sent["sessionId"])
        facts = (await client.finished(again["turnId"]))["metadata"]["hermes"]
    assert facts["cache"]["verdict"] == "reload"
    assert prefix(model, 1).startswith(prefix(model, 0))
    assert THINKING in model.requests[1].messages[1]["content"]


async def test_it_asks_the_server_to_cache_prompt_and_conversation(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("one")
        await client.finished(first["turnId"])
        second = await client.say("two", first["sessionId"])
        finished = await client.finished(second["turnId"])
    body: dict[str, Any] = model.requests[1].json
    assert "cache_control" in body["system"][-1]
    hinted = [
        index
        for index, message in enumerate(body["messages"])
        if "cache_control" in message["content"][-1]
    ]
    assert hinted == [0, 2]
    assert finished["usage"][0]["cachedInputTokens"] > 0


async def test_it_counts_what_the_cache_took_and_makes_up_no_price(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    counts = {
        "input_tokens": 10, "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 500, "output_tokens": 20,
    }  # fmt: skip
    model.script(Script(usage=counts))
    async with SocketClient(owner) as client:
        sent = await client.say("one")
        finished = await client.finished(sent["turnId"])
    [usage] = finished["usage"]
    assert usage["inputTokens"] == 1510
    assert usage["cachedInputTokens"] == 500
    assert usage["cacheWriteInputTokens"] == 1000
    assert "costUsd" not in finished["metadata"]["hermes"]  # nobody knows this server's prices
    stored = await turn(sent["turnId"])
    assert (stored.cache_write_tokens, stored.cost_usd) == (1000, None)


async def test_it_goes_on_where_the_model_paused(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["First. "], finish_reason="pause_turn"), Script(tokens=["Second."]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        finished = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
        assert client.text(sent["turnId"]).replace("\n", "") == "First. Second."
    assert finished["type"] == "RUN_FINISHED"
    assert model.requests[1].messages[-1]["role"] == "assistant"


async def test_a_refusal_without_words_is_told(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.default = Script(tokens=[], finish_reason="refusal")
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        failed = await client.finished(sent["turnId"])
    assert failed["code"] == "model_refused"
    assert len(model.requests) == 1


async def test_a_conversation_may_move_between_wires_and_back(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Each wire reads what the other left: reasoning, calls with odd ids, results, notices."""
    model.script(
        Script(reasoning=["I see"], redacted=["c2VjcmV0"], tokens=["A"],
               tool_calls=[ToolCall("toolu_1", "look")]),
        Script(tokens=["B"]),
        Script(tokens=["C"], tool_calls=[ToolCall("functions.look:0", "my.look", ["[]"])]),
        Script(tokens=["D"]),
        Script(status=400),
        Script(tokens=["E"]),
    )  # fmt: skip
    moves = [None, "openai:fake-1", "anthropic:fake-1", None]
    async with SocketClient(owner) as client:
        sent = await client.say("one")
        session_id = sent["sessionId"]
        for number, name in enumerate(moves[1:]):
            await client.finished(sent["turnId"])
            if name is not None:
                await client.ok("session.update", sessionId=session_id, model=name)
            sent = await client.say(f"more {number}", session_id)
        finished = await client.finished(sent["turnId"])
        await verified(client, session_id)
    assert finished["type"] == "RUN_FINISHED"
    openai, last = model.requests[2].messages, model.requests[-1].messages
    assert openai[2]["tool_calls"][0]["id"] == "toolu_1"
    assert "I see" not in str(openai)
    assert last[1]["content"][:2] == [THINKING, REDACTED]
    call, call_id = last[5]["content"][1], sent_call_id("functions.look:0", STRICT)
    assert (call["id"], call["name"], call["input"]) == (call_id, "my_look", {})
    assert last[6]["content"][0]["tool_use_id"] == call_id
    assert "[Notice: " in str(last[-1]["content"])
