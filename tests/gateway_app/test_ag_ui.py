"""Every event of a run is AG-UI's, without a field of our own, and in its order.

Each test looks at the frames that a client got and at the log that was stored, as it was written
and folded.
"""

import pytest
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.session_log import answer_of, kinds, read_log, verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_sends_a_first_turn(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        finished = await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert kinds(frames) == [
        "RUN_STARTED", "hermes.message", "hermes.title", "hermes.committed",
        "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
        "hermes.message", "hermes.committed", "RUN_FINISHED",
    ]  # fmt: skip
    assert finished["runId"] == f"{sent['turnId']}.1"
    assert finished["outcome"] == {"type": "success"}
    assert finished["usage"][0]["outputTokens"] == 4
    assert finished["metadata"]["hermes"]["cache"]["verdict"] == "new"


async def test_it_sends_a_plain_turn(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(), Script(send_usage=False), Script(usage_null=True))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        again = await client.say("and now?", sent["sessionId"])
        untold = await client.finished(again["turnId"])
        again = await client.say("and then?", sent["sessionId"])
        told = await client.finished(again["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert "usage" not in untold
    assert told["usage"][0]["inputTokens"] > 0
    assert kinds(frames, again["turnId"])[:3] == [
        "RUN_STARTED", "hermes.message", "hermes.committed",
    ]  # fmt: skip


async def test_it_sends_reasoning_before_text(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(reasoning=["Let me ", "see."], tokens=["Yes."]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    [answer] = [
        frame["event"]["value"]
        for frame in frames
        if frame["event"].get("name") == "hermes.message"
        and frame["event"]["value"]["kind"] == "assistant"
    ]
    thought, said = answer["parts"]
    assert (thought["text"], said["text"]) == ("Let me see.", "Yes.")
    assert 0 <= thought["durationMs"] < 60_000
    found = kinds(frames, sent["turnId"])
    assert found[found.index("REASONING_START") : found.index("TEXT_MESSAGE_END") + 1] == [
        "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END", "REASONING_END",
        "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    ]  # fmt: skip


async def test_it_sends_reasoning_that_comes_back_amid_the_text(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    pieces = [
        {"reasoning_content": "One. "}, {"content": "First. "},
        {"reasoning_content": "Two."}, {"content": "Second."},
    ]  # fmt: skip
    model.script(Script(raw=answer_of(*pieces)))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert client.text(sent["turnId"]) == "First. Second."
    assert kinds(frames).count("REASONING_START") == 2
    kept = [frame["event"] for frame in await read_log(sent["sessionId"])]
    thoughts = [one["delta"] for one in kept if one["type"] == "REASONING_MESSAGE_CONTENT"]
    assert thoughts == ["One. ", "Two."]


async def test_it_sends_a_call_of_a_tool_that_does_not_exist(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    calls = [ToolCall("a1", "look", ['{"at": ', '"the sky"}']), ToolCall("a2", "listen")]
    model.script(
        Script(tokens=["Let me look."], tool_calls=calls),
        Script(tokens=[], tool_calls=[ToolCall("a3", "look", ["{}"])]),
        Script(tokens=["I cannot."]),
    )
    async with SocketClient(owner) as client:
        sent = await client.say("what is above?")
        await client.finished(sent["turnId"])
        frames = await verified(client, sent["sessionId"])
    found = [frame["event"] for frame in frames]
    arguments = [event["delta"] for event in found if event["type"] == "TOOL_CALL_ARGS"]
    assert arguments == ['{"at": "the sky"}', "{}", "{}"]
    results = [event for event in found if event["type"] == "TOOL_CALL_RESULT"]
    assert [event["toolCallId"] for event in results] == ["a1", "a2", "a3"]
    assert client.text(sent["turnId"]) == "Let me look.I cannot."


async def test_it_keeps_calls_apart_whose_ids_the_model_repeats(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    nameless = [
        {"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": text}}]}
        for text in ('{"at":1}', '{"at":2}')
    ]
    model.script(*(Script(raw=answer_of(one)) for one in nameless), Script(tokens=["Done."]))
    async with SocketClient(owner) as client:
        sent = await client.say("look twice")
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    kept = [frame["event"] for frame in await read_log(sent["sessionId"])]
    assert [one["delta"] for one in kept if one["type"] == "TOOL_CALL_ARGS"] == [
        '{"at":1}', '{"at":2}',
    ]  # fmt: skip
    assert len({one["toolCallId"] for one in kept if one["type"] == "TOOL_CALL_START"}) == 2


async def test_it_sends_queued_turns_one_after_another(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(tokens=["one", "."], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("first")
        await client.until(lambda: client.text(sent["turnId"]))
        later = [await client.say(text, sent["sessionId"]) for text in ("second", "third")]
        gate.release()
        await client.finished(later[-1]["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert [turn["status"] for turn in later] == ["queued", "queued"]
    started = [one["event"] for one in frames if one["event"]["type"] == "RUN_STARTED"]
    turns = [sent["turnId"], *(turn["turnId"] for turn in later)]
    assert [event["runId"].split(".")[0] for event in started] == turns
    assert kinds(frames, later[0]["turnId"])[:2] == ["RUN_STARTED", "hermes.message"]


async def test_it_sends_a_retry_as_a_run_of_its_own(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        retry = await client.ok(
            "turn.retry", sessionId=sent["sessionId"], turnId=sent["turnId"], clientMessageId="r"
        )
        await client.finished(retry["turnId"])
        frames = await verified(client, sent["sessionId"])
    assert kinds(frames, retry["turnId"])[:3] == [
        "RUN_STARTED", "hermes.rewritten", "hermes.committed",
    ]  # fmt: skip


async def test_it_sends_an_edit_as_a_run_of_its_own(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("helo")
        await client.finished(sent["turnId"])
        [message] = [
            frame["event"]["value"]
            for frame in client.events(turn_id=sent["turnId"])
            if frame["event"].get("name") == "hermes.message"
            and frame["event"]["value"]["kind"] == "user"
        ]
        edit = await client.ok(
            "message.edit",
            sessionId=sent["sessionId"],
            messageId=message["id"],
            content="hello",
            clientMessageId="e",
        )
        await client.finished(edit["turnId"])
        await client.ok("branch.select", sessionId=sent["sessionId"], messageId=message["id"])
        frames = await verified(client, sent["sessionId"])
        await client.until(
            lambda: client.events(sent["sessionId"])[-1]["event"].get("name") == "hermes.rewritten"
        )
    assert kinds(frames, edit["turnId"])[:4] == [
        "RUN_STARTED", "hermes.rewritten", "hermes.message", "hermes.committed",
    ]  # fmt: skip
