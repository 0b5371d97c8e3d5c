"""What a turn makes of every answer: reasoning, refusals, limits, empty ones, split calls."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.agent import EMPTY_RETRIES
from gateway_app.host import GatewayHost
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Script, ToolCall
from tests.session_log import answer_of, kinds, verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

Json = dict[str, Any]


@sync_to_async
def rows(session_id: str) -> list[tuple[str, list[Json], str | None]]:
    """(kind, parts, finish) of the model's rows, in order. How long it thought is taken off."""
    found = Message.objects.filter(session_id=session_id).exclude(kind__in=["user", "session_meta"])
    kept = list(found.order_by("position").values_list("kind", "parts", "finish"))
    for part in (part for _, parts, _ in kept for part in parts if part["type"] == "reasoning"):
        assert part.pop("durationMs", 0) >= 0
    return kept


def shown(client: SocketClient, kind: str) -> str:
    """All deltas of one kind of event, joined."""
    events = [frame["event"] for frame in client.events()]
    return "".join(event["delta"] for event in events if event["type"] == kind)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_it_shows_and_keeps_reasoning_of_both_spellings(
    gateway: GatewayHost, model: FakeModelServer, owner: User, field: str
) -> None:
    model.script(Script(reasoning=["I ", "see"], reasoning_field=field, tokens=["Yes"]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
        assert shown(client, "REASONING_MESSAGE_CONTENT") == "I see"
        again = await client.say("more", sent["sessionId"])
        await client.finished(again["turnId"])
    assert (await rows(sent["sessionId"]))[0] == (
        "assistant",
        [{"type": "reasoning", "text": "I see"}, {"type": "text", "text": "Yes"}],
        "stop",
    )
    assert {"role": "assistant", "content": "Yes"} in model.requests[1].messages


async def test_it_leaves_marks_within_the_text_alone(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """What a server did not part, nobody else can part safely: it may be quoted."""
    model.script(Script(tokens=["<think>", "hm", "</think>", "Yes"]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        assert client.text(sent["turnId"]) == "<think>hm</think>Yes"


async def test_its_events_are_whole_when_reasoning_and_text_take_turns(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    pieces = answer_of(
        {"reasoning_content": "One. "}, {"content": "A"}, {"reasoning_content": "Two."},
        {"content": "B"},
    )  # fmt: skip
    model.script(Script(raw=pieces))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
        assert client.text(sent["turnId"]) == "AB"
        assert shown(client, "REASONING_MESSAGE_CONTENT") == "One. Two."
    assert (await rows(sent["sessionId"]))[0][1] == [
        {"type": "reasoning", "text": "One. Two."},
        {"type": "text", "text": "AB"},
    ]


async def test_a_refusal_in_words_is_the_answer(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(text_field="refusal", tokens=["I can't ", "help with that."]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        finished = await client.finished(sent["turnId"])
        assert finished["type"] == "RUN_FINISHED"
        assert client.text(sent["turnId"]) == "I can't help with that."
    text = [{"type": "text", "text": "I can't help with that."}]
    assert await rows(sent["sessionId"]) == [("assistant", text, "refused")]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_calls"),
        ("eos", "stop"),
        ("insufficient_system_resource", "stop"),
    ],
)
async def test_it_keeps_why_an_answer_ended(
    gateway: GatewayHost, model: FakeModelServer, owner: User, reason: str, finish: str
) -> None:
    model.script(Script(tokens=["So"], finish_reason=reason))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
    assert await rows(sent["sessionId"]) == [
        ("assistant", [{"type": "text", "text": "So"}], finish)
    ]


@pytest.mark.parametrize(
    ("script", "code", "sentence", "requests"),
    [
        (Script(tokens=[]), "model_invalid", "an empty answer", EMPTY_RETRIES + 1),
        (Script(tokens=[" \n"]), "model_invalid", "an empty answer", EMPTY_RETRIES + 1),
        (Script(tokens=[], reasoning=["Hm"]), "model_invalid", "an empty answer",
         EMPTY_RETRIES + 1),
        (Script(tokens=[], finish_reason="content_filter"), "model_refused", "withheld", 1),
        (Script(tokens=[], reasoning=["Hm"], finish_reason="length"), "model_invalid",
         "before it began to answer", 1),
        (Script(tokens=["So"], tool_calls=[ToolCall("c", "look", ['{"at'])],
                finish_reason="length"), "model_invalid", "in the middle of a tool call", 1),
    ],
    ids=["empty", "blank", "thoughts", "filtered", "limit", "cut-call"],
)  # fmt: skip
async def test_an_answer_without_an_answer_is_one_error(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    script: Script,
    code: str,
    sentence: str,
    requests: int,
) -> None:
    model.default = script
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        failed = await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert failed["code"] == code
    assert sentence in failed["message"]
    assert len(model.requests) == requests
    assert kinds(frames)[-1] == "RUN_ERROR"
    assert "tool_call" not in json.dumps(await rows(sent["sessionId"]))


async def test_it_asks_again_after_an_empty_answer(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=[]), Script(tokens=["Here"]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
        assert client.text(sent["turnId"]) == "Here"
    assert model.requests[0].body == model.requests[1].body


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_it_joins_a_call_however_it_was_split(
    gateway: GatewayHost, model: FakeModelServer, owner: User, size: int
) -> None:
    arguments = json.dumps({"at": "Grüße \U0001f680", "n": 1e22}, ensure_ascii=False)
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    calls = [ToolCall("call_a", "look", pieces), ToolCall("call_b", "look", pieces[::-1][::-1])]
    model.script(Script(tokens=[], tool_calls=calls), Script(tokens=["Done"]))
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    sent_back = model.requests[1].messages[-3]
    assert [call["function"]["arguments"] for call in sent_back["tool_calls"]] == [arguments] * 2
    assert [call["id"] for call in sent_back["tool_calls"]] == ["call_a", "call_b"]
