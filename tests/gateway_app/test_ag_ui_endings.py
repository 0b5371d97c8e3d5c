"""However a run ends, its events are whole: stopped, failed, crashed and run again."""

import pytest
from django.contrib.auth.models import User

from gateway_app.agent import MAX_STEPS
from gateway_app.host import GatewayHost
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.session_log import answer_of, kinds, verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_closes_what_a_stop_leaves_open(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(reasoning=["Well, "], tokens=["so ", "far"], gates={2: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        await client.ok("turn.stop", turnId=sent["turnId"])
        finished = await client.finished(sent["turnId"])
        await client.ok("turn.stop", sessionId=sent["sessionId"])
        frames = await verified(client, sent["sessionId"])
    gate.release()
    assert finished["outcome"] == {"type": "cancelled"}
    assert kinds(frames)[-4:] == [
        "TEXT_MESSAGE_END", "hermes.message", "hermes.committed", "RUN_FINISHED",
    ]  # fmt: skip


async def test_it_closes_reasoning_that_a_stop_leaves_open(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(reasoning=["Well, ", "then"], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: "REASONING_MESSAGE_CONTENT" in kinds(client.events()))
        await client.ok("turn.stop", turnId=sent["turnId"])
        await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    gate.release()
    assert "REASONING_END" in kinds(frames)


async def test_it_ends_a_run_that_is_stopped_before_its_first_token(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(headers_gate=gate))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await model.request(0)
        await client.ok("turn.stop", sessionId=sent["sessionId"])
        finished = await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    gate.release()
    assert finished["outcome"] == {"type": "cancelled"}
    assert "TEXT_MESSAGE_START" not in kinds(frames)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script(status=500), "model_unavailable"),
        (Script(status=401), "model_auth"),
        (Script(status=429), "model_rate_limited"),
        (Script(cut_at_byte=1), "model_unavailable"),
        (Script(raw=[b"data: {not json}\n\n"]), "model_invalid"),
        (Script(raw=[b"<html>busy</html>"], content_type="text/html"), "model_invalid"),
        (Script(tokens=["Half ", "an ", "answer"], cut_at_byte=600), "model_unavailable"),
        (Script(tokens=["Half"], finish_reason=None, done=False), "model_unavailable"),
    ],
    ids=["500", "401", "429", "cut-before", "garbled", "a-page", "cut-amid", "no-end"],
)
async def test_it_ends_a_run_whose_provider_fails(
    gateway: GatewayHost, model: FakeModelServer, owner: User, script: Script, code: str
) -> None:
    model.script(script)
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        error = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
        assert (error["type"], error["code"]) == ("RUN_ERROR", code)
        again = await client.say("try again", sent["sessionId"])
        assert (await client.finished(again["turnId"]))["type"] == "RUN_FINISHED"
        await verified(client, sent["sessionId"])


async def test_it_closes_the_text_that_a_garbled_chunk_breaks_off(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    pieces = answer_of({"content": "Half an"})
    gate = Gate()
    model.script(Script(raw=[pieces[0], b"data: {not json}\n\n"], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        gate.release()
        error = await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert error["code"] == "model_invalid"
    assert client.text(sent["turnId"]) == "Half an"
    assert "TEXT_MESSAGE_END" in kinds(frames)


@pytest.mark.parametrize("second", [Script(tokens=["Hello"]), Script(tokens=["\n"])])
async def test_it_closes_a_blank_answer_before_it_asks_again(
    gateway: GatewayHost, model: FakeModelServer, owner: User, second: Script
) -> None:
    model.script(Script(tokens=[" ", "\n"]), second)
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])


async def test_it_runs_into_the_limit_of_steps(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.default = Script(tokens=[], tool_calls=[ToolCall("again", "look")])
    async with SocketClient(owner) as client:
        sent = await client.say("look until you see it")
        error = await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert error["code"] == "limit"
    calls = [one["event"] for one in frames if one["event"]["type"] == "TOOL_CALL_START"]
    assert len({call["toolCallId"] for call in calls}) == len(calls) == MAX_STEPS
