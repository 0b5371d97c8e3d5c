"""Turns with tools: what is offered, what is run, for whom, and what the model hears of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import AgentVersion, FrozenPrompt
from gateway_app.tools import registry
from gateway_app.tools.python_function import function_tool
from sessions_app.models import Message
from tests.factories import SessionFactory
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import grows_only
from tests.gateway_app.tools.conftest import results, rows_of, told, with_anthropic
from tests.session_log import verified
from tests.socket_client import SocketClient
from tests.toolbox import agent_tools

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("equipped")]


def calls(*made: tuple[str, str, str], text: str = "") -> Script:
    return Script(
        tokens=[text] if text else [],
        tool_calls=[ToolCall(call_id, name, [arguments]) for call_id, name, arguments in made],
    )


async def say(client: SocketClient, text: str = "look") -> str:
    """One whole turn; its session."""
    sent = await client.say(text)
    await client.finished(sent["turnId"])
    await verified(client, sent["sessionId"])
    return str(sent["sessionId"])


async def test_it_runs_a_tool_for_the_person_who_asked(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(calls(("a1", "look", '{"where": "up"}'), text="I look. "), Script())
    async with SocketClient(owner) as client:
        session_id = await say(client)
        again = await client.say("thanks", session_id)
        await client.finished(again["turnId"])
    [context] = agent_tools.calls
    assert (context.user, str(context.session_id), context.call_id) == (owner, session_id, "a1")
    rows = await rows_of(session_id)
    assert [kind for kind, *_ in rows][:4] == ["user", "assistant", "tool", "assistant"]
    assert results(rows) == [("a1", False, "Nothing is up.")]
    offered = [tool["function"]["name"] for tool in model.requests[0].json["tools"]]
    assert offered == sorted(tool.name for tool in registry.all_tools())
    assert model.requests[1].messages[-1] == {
        "role": "tool", "tool_call_id": "a1", "content": "Nothing is up.",
    }  # fmt: skip
    assert grows_only(model)


async def test_it_marks_what_a_session_began_with(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        session_id = await say(client)
    meta = await Message.objects.aget(session_id=session_id, kind="session_meta")
    assert meta.parts[0]["tools"] == [tool.name for tool in registry.all_tools()]


class TestWithRareFlushes:
    """Where nothing but an answer's first word would be logged soon."""

    @pytest.fixture
    def config(self, config: GatewayConfig) -> GatewayConfig:
        return replace(config, flush_quick_tick_ms=20_000)

    async def test_it_logs_a_call_before_it_is_made(
        self, gateway: GatewayHost, model: FakeModelServer, owner: User
    ) -> None:
        """The tool tells what the log holds while it runs."""
        model.script(calls(("a1", "remember", "{}"), text="I try. "), Script())
        async with SocketClient(owner) as client:
            session_id = await say(client)
        [(_, _, content)] = results(await rows_of(session_id))
        logged = json.loads(content)
        assert logged[-3:] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


async def test_it_makes_the_calls_of_a_step_at_once_and_keeps_their_order(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    agent_tools.gates |= {"left": Gate(), "right": Gate()}
    first, second = ("a1", "look", '{"where": "left"}'), ("a2", "listen", '{"where": "right"}')
    model.script(calls(first, second, ("a3", "fly", "{}")), Script())
    async with SocketClient(owner) as client:
        sent = await client.say("look and listen")
        agent_tools.gates["right"].release()
        await client.until(lambda: told(client) == 2)
        agent_tools.gates["left"].release()
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert results(await rows_of(sent["sessionId"])) == [
        ("a1", False, "Nothing is left."),
        ("a2", False, '{"heard":"right"}'),
        ("a3", True, "There is no tool 'fly'."),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("fly", "{}", "There is no tool 'fly'."),
        (
            "look",
            '{"where": 3}',
            "The arguments do not fit: where: Input should be a",
        ),
        ("look", '{"where": ', "The arguments do not fit: Invalid JSON"),
        ("stumble", '{"how": "raise"}', "The tool failed."),
        ("stumble", '{"how": "exit"}', "The tool failed."),
        ("stumble", '{"how": "refuse"}', "The ground is too wet."),
        ("stumble", '{"how": "shout"}', "It ran, but its result has 200,000 characters"),
        ("dawdle", "{}", "It did not answer within 0.05 s"),
    ],
)
async def test_it_tells_the_model_why_there_is_no_result(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    name: str,
    arguments: str,
    why: str,
) -> None:
    model.script(calls(("a1", name, arguments)), Script())
    async with SocketClient(owner) as client:
        session_id = await say(client)
    [(_, error, content)] = results(await rows_of(session_id))
    assert content.startswith(why)
    assert error is True
    everything = json.dumps(client.frames) + str([one.body for one in model.requests])
    assert "secret" not in everything
    assert "Traceback" not in everything


async def test_it_offers_no_tool_to_an_agent_that_has_none(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    await sync_to_async(AgentVersion.objects.update)(tools="")
    model.script(calls(("a1", "look", "{}")), Script())
    async with SocketClient(owner) as client:
        session_id = await say(client)
    assert b'"tools"' not in model.requests[0].body
    assert results(await rows_of(session_id)) == [("a1", True, "There is no tool 'look'.")]
    assert not agent_tools.calls


async def test_it_runs_nothing_for_somebody_whose_account_was_closed(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(replace(calls(("a1", "look", "{}")), end_gate=gate), Script())
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        await model.request(0)
        await sync_to_async(User.objects.update)(is_active=False)
        gate.release()
        assert await gateway.runner.wait_idle(60)
    [(_, error, content)] = results(await rows_of(sent["sessionId"]))
    assert (error, content.partition(":")[0]) == (True, "It was not run")
    assert not agent_tools.calls


async def test_it_keeps_the_schemas_of_a_session_whatever_becomes_of_its_tools(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One is removed, another is written anew: the bytes stay, and what is gone says so."""

    def listen(why: str) -> str:
        """Listen for a reason."""
        return why

    async with SocketClient(owner) as client:
        session_id = await say(client, "hello")
        monkeypatch.delitem(registry._tools, "look")
        monkeypatch.setitem(registry._tools, "listen", function_tool(listen))
        model.script(calls(("a1", "look", "{}"), ("a2", "listen", '{"where": "up"}')), Script())
        sent = await client.say("look", session_id)
        await client.finished(sent["turnId"])
    assert grows_only(model)
    gone, changed = [content for _, _, content in results(await rows_of(session_id))]
    assert gone == "There is no tool 'look'."
    assert changed.startswith("The arguments do not fit: why: Field required")
    assert await FrozenPrompt.objects.acount() == 1


async def test_it_finds_only_the_conversations_of_the_person_who_asks(
    gateway: GatewayHost, model: FakeModelServer, owner: User, stranger: User
) -> None:
    for user, title in ((owner, "Garden of mine"), (stranger, "Garden of another")):
        await sync_to_async(SessionFactory)(owner=user, title=title)
    model.script(calls(("a1", "search_conversations", '{"query": "garden"}')), Script())
    async with SocketClient(owner) as client:
        session_id = await say(client, "what did I say of the garden?")
    [(_, error, content)] = results(await rows_of(session_id))
    assert not error
    assert [one["title"] for one in json.loads(content)] == ["Garden of mine"]


async def test_it_tells_the_time(gateway: GatewayHost, model: FakeModelServer, owner: User) -> None:
    berlin, nowhere = '{"timezone": "Europe/Berlin"}', '{"timezone": "../secret"}'
    model.script(calls(("a1", "current_time", berlin), ("a2", "current_time", nowhere)), Script())
    async with SocketClient(owner) as client:
        session_id = await say(client)
    answer, refused = results(await rows_of(session_id))
    assert answer[2].endswith(("CET", "CEST"))
    assert refused[1:] == (True, "There is no time zone '../secret'.")


class TestAnthropic:
    """The same over Messages."""

    @pytest.fixture
    def config(self, config: GatewayConfig, model: FakeModelServer) -> GatewayConfig:
        return with_anthropic(config, model)

    async def test_it_offers_tools_and_sends_results_back(
        self, gateway: GatewayHost, model: FakeModelServer, owner: User
    ) -> None:
        model.script(calls(("a1", "look", '{"where": "up"}'), ("a2", "fly", "{}")), Script())
        async with SocketClient(owner) as client:
            await say(client)
        first, second = (request.json for request in model.requests)
        assert first["tools"] == second["tools"]
        offered: dict[str, Any] = {tool["name"]: tool for tool in first["tools"]}
        assert offered["look"]["description"] == "Look in a direction."
        assert offered["look"]["input_schema"]["properties"]["where"]["type"] == "string"
        blocks = [{**block, "cache_control": None} for block in second["messages"][-1]["content"]]
        assert [(one["tool_use_id"], one.get("is_error"), one["content"]) for one in blocks] == [
            ("a1", None, "Nothing is up."), ("a2", True, "There is no tool 'fly'."),
        ]  # fmt: skip
