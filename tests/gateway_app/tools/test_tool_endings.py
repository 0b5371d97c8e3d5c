"""Turns that end while a tool runs: stopped, drained, crashed. No tool is run a second time."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from gateway_app.services.dead_runs import UNKNOWN
from gateway_app.turns.tool_step import STOPPED
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import grows_only
from tests.gateway_app.test_ag_ui_recovery import crash
from tests.gateway_app.tools.conftest import results, rows_of, told, with_anthropic
from tests.session_log import kinds, read_log, verified
from tests.socket_client import Frame, SocketClient
from tests.toolbox import agent_tools

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("equipped")]

LOOK = ToolCall("a1", "look", ['{"where": "left"}'])
LISTEN = ToolCall("a1", "listen", ['{"where": "left"}'])
ENDED = ToolCall("a2", "look", ['{"where": "right"}'])
RIGHT = ("a2", False, "Nothing is right.")


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """A process that looks for orphans often."""
    return replace(config, heartbeat_s=0.05)


async def held(client: SocketClient, *others: ToolCall, first: ToolCall, text: str) -> Frame:
    """A turn whose first call stands, and whose others have ended."""
    agent_tools.gates["left"] = Gate()
    sent = await client.say(text)

    await client.until(lambda: "TOOL_CALL_END" in kinds(client.events()))
    await client.until(lambda: told(client) == len(others))
    await agent_tools.called(first.id)
    return sent


@pytest.mark.parametrize("call", [LOOK, LISTEN], ids=["thread", "coroutine"])
@pytest.mark.parametrize("text", ["I look. ", ""], ids=["with-text", "without"])
async def test_it_stops_while_a_tool_runs(
    gateway: GatewayHost, model: FakeModelServer, owner: User, call: ToolCall, text: str
) -> None:
    model.script(Script(tokens=[text] if text else [], tool_calls=[call, ENDED]), Script())
    async with SocketClient(owner) as client:
        sent = await held(client, ENDED, first=call, text="look")
        await client.ok("turn.stop", turnId=sent["turnId"])
        finished = await client.finished(sent["turnId"])
        assert finished["outcome"] == {"type": "cancelled"}
        before = await rows_of(sent["sessionId"])
        agent_tools.gates["left"].release()
        again = await client.say("and now?", sent["sessionId"])
        await client.finished(again["turnId"])
        await verified(client, sent["sessionId"])
    assert results(before) == [("a1", "unknown", STOPPED), RIGHT]
    closing = [] if text else ["notice"]
    assert [kind for kind, *_ in before] == ["user", "assistant", "tool", "tool", *closing]
    assert before[1][1] == "stopped"
    assert (await rows_of(sent["sessionId"]))[: len(before)] == before
    assert told(client) == 2
    roles = [message["role"] for message in model.requests[1].messages]
    assert roles[1:5] == ["user", "assistant", "tool", "tool"]
    assert grows_only(model)


@pytest.mark.parametrize("call", [LOOK, LISTEN], ids=["thread", "coroutine"])
@pytest.mark.parametrize("others", [[], [ENDED]], ids=["alone", "with-one-that-had-ended"])
async def test_it_goes_on_after_a_crash_without_calling_again(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    call: ToolCall,
    others: list[ToolCall],
) -> None:
    model.script(Script(tokens=["I look. "], tool_calls=[call, *others]), Script(tokens=["Hm."]))
    async with SocketClient(owner) as client:
        sent = await held(client, *others, first=call, text="look")
        await crash(gateway, sent["sessionId"])
        finished = await client.finished(sent["turnId"])
        agent_tools.gates["left"].release()
        await verified(client, sent["sessionId"])
    assert finished["type"] == "RUN_FINISHED"
    assert finished["runId"].endswith(".2")
    rows = await rows_of(sent["sessionId"])
    kept = [RIGHT] if others else []
    assert results(rows) == [("a1", "unknown", UNKNOWN), *kept]
    answers = [(finish, parts[0]["text"]) for kind, finish, parts in rows if kind == "assistant"]
    assert answers == [("tool_calls", "I look. "), ("stop", "Hm.")]
    assert len(agent_tools.calls) == 1 + len(others)
    heard = [one["content"] for one in model.requests[1].messages if one["role"] == "tool"]
    assert heard[0] == UNKNOWN
    assert grows_only(model)


async def test_it_ends_a_crashed_turn_that_was_told_to_stop(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=[], tool_calls=[LOOK]))
    async with SocketClient(owner) as client:
        sent = await held(client, first=LOOK, text="look")
        await gateway.runner.aclose()
        await client.ok("turn.stop", turnId=sent["turnId"])
        await crash(gateway, sent["sessionId"])
        finished = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert finished["outcome"] == {"type": "cancelled"}
    rows = await rows_of(sent["sessionId"])
    assert [(kind, finish) for kind, finish, _ in rows] == [
        ("user", None), ("assistant", "stopped"), ("tool", None), ("notice", "stopped"),
    ]  # fmt: skip
    assert results(rows) == [("a1", "unknown", UNKNOWN)]


async def test_it_gives_a_turn_up_whose_tools_crash_again_and_again(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    names = iter("abc")
    model.default = lambda _: Script(
        tokens=[], tool_calls=[ToolCall(next(names), "look", LOOK.arguments)]
    )
    agent_tools.gates["left"] = Gate()
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        for run in range(3):
            await agent_tools.called("abc"[run])
            await crash(gateway, sent["sessionId"])
        error = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert error["metadata"]["hermes"]["retrying"] is False
    rows = await rows_of(sent["sessionId"])
    assert [(kind, finish) for kind, finish, _ in rows] == [
        ("user", None),
        ("assistant", "tool_calls"), ("tool", None),
        ("assistant", "tool_calls"), ("tool", None),
        ("assistant", "interrupted"), ("tool", None), ("notice", "interrupted"),
    ]  # fmt: skip
    assert {error for _, error, _ in results(rows)} == {"unknown"}


class TestAnthropic:
    """With a provider that wants its signed reasoning back."""

    @pytest.fixture
    def config(self, config: GatewayConfig, model: FakeModelServer) -> GatewayConfig:
        return with_anthropic(config, model)

    @pytest.mark.parametrize("end", ["stop", "crash"])
    async def test_it_keeps_what_the_provider_wants_back(
        self, gateway: GatewayHost, model: FakeModelServer, owner: User, end: str
    ) -> None:
        model.script(Script(reasoning=["Hm."], tokens=["I look."], tool_calls=[LOOK]), Script())
        async with SocketClient(owner) as client:
            sent = await held(client, first=LOOK, text="look")
            if end == "crash":
                await crash(gateway, sent["sessionId"])
            else:
                await client.ok("turn.stop", turnId=sent["turnId"])
                await client.finished(sent["turnId"])
                sent = await client.say("and now?", sent["sessionId"])
            await client.finished(sent["turnId"])
            await verified(client, sent["sessionId"])
        kinds_back = [block["type"] for block in model.requests[1].messages[1]["content"]]
        assert kinds_back == ["thinking", "text", "tool_use"]
        assert "c2lnbmVk" not in str(client.frames)
        assert not await Turn.objects.exclude(step_sent="").aexists()


async def test_it_drains_while_a_tool_runs(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["I look. "], tool_calls=[LOOK, ENDED]), Script())
    later = GatewayHost(gateway.config)
    async with SocketClient(owner) as client:
        sent = await held(client, ENDED, first=LOOK, text="look")
        await gateway.drain(0)
        assert kinds(await read_log(sent["sessionId"]))[-1] == "TOOL_CALL_RESULT"
        await later.start(checkpoint=False)
        try:
            agent_tools.gates["left"].release()
            await model.request(1)
            assert await later.runner.wait_idle(60)
        finally:
            await later.aclose()
    assert results(await rows_of(sent["sessionId"])) == [("a1", "unknown", UNKNOWN), RIGHT]
    assert len(agent_tools.calls) == 2
