"""Whole turns with servers of Chat Completions that want their reasoning back."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Json, Script, ToolCall
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

CALL = ToolCall("call_1", "look", ['{"at":', "1e22}"])
PIECES: list[Json] = [
    {"type": "reasoning.text", "text": "I ", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.text", "text": "see", "signature": None, "index": 0},
    {"type": "reasoning.text", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "id": "rs_1", "data": "c2Vj", "index": 1},
    {"type": "reasoning.summary", "summary": "Seen", "index": 2},
    {"type": "reasoning.encrypted", "data": "without a number"},
]
DETAILS: list[Json] = [
    {"type": "reasoning.text", "text": "I see", "format": "anthropic-claude-v1", "index": 0,
     "signature": "c2ln"},
    {"type": "reasoning.encrypted", "id": "rs_1", "data": "c2Vj", "index": 1},
    {"type": "reasoning.summary", "summary": "Seen", "index": 2},
    {"type": "reasoning.encrypted", "data": "without a number"},
]  # fmt: skip


def prefix(model: FakeModelServer, number: int) -> str:
    """A request without the brackets that close its messages."""
    body = model.requests[number].body.decode()
    assert body.endswith("]}")
    return body.removesuffix("]}")


def strict(script: Script, name: str = "reasoning_content") -> Callable[[Json], Script]:
    """The script, refused as DeepSeek refuses where reasoning of a call is not there."""

    def answer(body: Json) -> Script:
        calls = [one for one in body["messages"] if one.get("tool_calls")]
        if all(name in one for one in calls):
            return script
        return Script(status=400, error={"message": f"The {name} must be passed back."})

    return answer


@sync_to_async
def sent_parts(session_id: str) -> list[Any]:
    found = Message.objects.filter(session_id=session_id, kind="assistant")
    return [message.sent_parts for message in found.order_by("position")]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_it_sends_reasoning_back_with_calls_under_the_name_it_had(
    gateway: GatewayHost, model: FakeModelServer, owner: User, name: str
) -> None:
    """Within the turn and in every later one, as do the answers that followed the calls."""
    model.script(
        Script(reasoning=["I ", "see"], reasoning_field=name, tokens=["Wait"], tool_calls=[CALL]),
        strict(Script(reasoning=["Done"], reasoning_field=name, tokens=["Blue"]), name),
        strict(Script(reasoning=["Sure"], reasoning_field=name, tokens=["Yes"]), name),
        strict(Script(), name),
    )
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
        for words in ("sure?", "really?"):
            sent = await client.say(words, sent["sessionId"])
            facts = (await client.finished(sent["turnId"]))["metadata"]["hermes"]
            assert facts["cache"]["verdict"] == "reuse"
    asked = model.requests[3].messages
    assert [one.get(name) for one in asked if one["role"] == "assistant"] == ["I see", "Done", None]
    assert asked[2]["tool_calls"][0]["function"]["arguments"] == '{"at":1e22}'
    for number in range(3):
        assert prefix(model, number + 1).startswith(prefix(model, number))


async def test_an_answer_without_calls_stores_nothing_twice(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(reasoning=["I see"], tokens=["Yes"]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        again = await client.say("more", sent["sessionId"])
        await client.finished(again["turnId"])
    assert await sent_parts(sent["sessionId"]) == [None, None]
    assert model.requests[1].messages[2] == {"role": "assistant", "content": "Yes"}


async def test_it_sends_details_back_whole_and_in_order(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Also of a turn without calls: they may be signed or encrypted."""
    model.script(
        Script(reasoning=["I ", "see"], reasoning_field="reasoning", reasoning_details=PIECES)
    )
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        again = await client.say("more", sent["sessionId"])
        await client.finished(again["turnId"])
        history = await client.ok("session.history", sessionId=sent["sessionId"])
        seen = str([client.events(), history])
    assert model.requests[1].messages[2] == {
        "role": "assistant", "content": "Hello, world!", "reasoning_details": DETAILS,
    }  # fmt: skip
    assert "I see" in seen
    assert "c2ln" not in seen
    assert "c2Vj" not in seen


async def test_it_sends_the_signature_of_a_call_back(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    model.script(Script(tokens=(), tool_calls=[ToolCall("call_1", "look", extra=extra), CALL]))
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        await client.finished(sent["turnId"])
    first, second = model.requests[1].messages[2]["tool_calls"]
    assert first["extra_content"] == extra
    assert "extra_content" not in second


async def test_a_stopped_answer_goes_back_without_reasoning(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(
        Script(reasoning_details=PIECES, tokens=["Well ", "then"], gates={len(PIECES) + 1: gate})
    )
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        await client.ok("turn.stop", turnId=sent["turnId"])
        await client.finished(sent["turnId"])
        gate.release()
        again = await client.say("go on", sent["sessionId"])
        await client.finished(again["turnId"])
    assert model.requests[1].messages[2] == {"role": "assistant", "content": "Well "}


async def test_a_cold_process_sends_the_same_bytes(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(reasoning=["I see"], reasoning_details=PIECES, tool_calls=[CALL]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        assert await gateway.runner.wait_idle(60)
        gateway.cache.evict_idle()
        again = await client.say("more", sent["sessionId"])
        facts = (await client.finished(again["turnId"]))["metadata"]["hermes"]
    assert facts["cache"]["verdict"] == "reload"
    assert prefix(model, 2).startswith(prefix(model, 1))
    assert model.requests[2].messages[2]["reasoning_content"] == "I see"
