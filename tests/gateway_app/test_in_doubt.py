"""A commit whose confirmation is lost on the way: nobody knows whether it happened.

It did, here, or it did not: nothing is logged or stored twice, and nothing is left out.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from gateway_app.event_store import flush_runs
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from gateway_app.services.runs import write_run
from gateway_app.turns.heartbeat import Heartbeat
from sessions_app.models import Message, Session
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import in_database
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

LANDED = [True, False]


def lose_confirmation(
    gateway: GatewayHost,
    monkeypatch: pytest.MonkeyPatch,
    wanted: Callable[..., Any],
    landed: bool,
    also: Callable[[], None] = lambda: None,
) -> list[str]:
    """The next call of `wanted` breaks off, after or before its commit; notes that it did.

    Meanwhile `also` happens, on the event loop.
    """
    write, lost = gateway.lanes.write, []

    def losing(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if call is not wanted or lost:
            return write(call, *args, **kwargs)
        lost.append("lost")
        asyncio.get_running_loop().call_soon(also)

        def broken_off() -> None:
            if landed:
                call(*args, **kwargs)
            raise OperationalError("the connection was lost")

        return write(broken_off)

    monkeypatch.setattr(gateway.lanes, "write", losing)
    return lost


def answers_of(turn_id: str) -> list[tuple[str, str, str]]:
    rows = Message.objects.filter(turn_id=turn_id).exclude(kind__in=["user", "session_meta"])
    return [
        (row.kind, row.state, "".join(part.get("text", "") for part in row.parts))
        for row in rows.order_by("position")
    ]


@pytest.mark.parametrize("landed", LANDED)
async def test_it_logs_a_flush_once(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    monkeypatch: pytest.MonkeyPatch,
    landed: bool,
) -> None:
    gate, last = Gate(), Gate()
    model.script(Script(tokens=["one ", "one ", "one ", "two"], gates={1: gate, 3: last}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        lost = lose_confirmation(gateway, monkeypatch, flush_runs, landed)
        gate.release()
        await client.until(lambda: client.text(sent["turnId"]).count("one") >= 3)
        last.release()
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
        assert client.text(sent["turnId"]) == "one one one two"
    assert lost == ["lost"]
    assert await in_database(answers_of, sent["turnId"]) == [
        ("assistant", "active", "one one one two")
    ]


@pytest.mark.parametrize("landed", LANDED)
async def test_it_ends_a_turn_once(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    monkeypatch: pytest.MonkeyPatch,
    landed: bool,
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        await client.finished(first["turnId"])
        lost = lose_confirmation(gateway, monkeypatch, write_run, landed)
        sent = await client.say("again", first["sessionId"])
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert lost == ["lost"]
    assert await in_database(answers_of, sent["turnId"]) == [
        ("assistant", "active", "Hello, world!")
    ]


@pytest.mark.parametrize("landed", LANDED)
async def test_it_goes_on_from_a_step_in_doubt(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    monkeypatch: pytest.MonkeyPatch,
    landed: bool,
) -> None:
    """The run is left, and whoever recovers the turn reads what became of the step."""
    call = Script(tokens=["I look. "], tool_calls=[ToolCall("a1", "look")])
    model.script(call, *([] if landed else [call]), Script(tokens=["done"]))
    async with SocketClient(owner) as client:
        lost = lose_confirmation(gateway, monkeypatch, write_run, landed)
        sent = await client.say("hello")
        assert await gateway.runner.wait_idle(10)
        assert lost == ["lost"]
        session = Session.objects.filter(pk=sent["sessionId"])
        await in_database(session.update, lease_expires_at=None)
        await Heartbeat(gateway.runner, gateway.lanes, gateway.hub, gateway.config).beat()
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    rows = await in_database(answers_of, sent["turnId"])
    assert [(kind, text) for kind, state, text in rows if state == "active"] == [
        ("assistant", "I look. "), ("tool", ""), ("assistant", "done"),
    ]  # fmt: skip
    assert await in_database(Turn.objects.filter(runs=2, state="completed").count) == 1


@pytest.mark.parametrize("landed", LANDED)
async def test_it_keeps_what_was_shown_when_a_step_in_doubt_is_stopped(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    monkeypatch: pytest.MonkeyPatch,
    landed: bool,
) -> None:
    """The stop comes while the step is being written: nobody waits for the write any more."""
    gate = Gate()
    call = Script(tokens=["I look. "], tool_calls=[ToolCall("a1", "look")], gates={1: gate})
    model.script(call)

    def stop_all() -> None:
        for live in gateway.runner.live.values():
            live.stop("stopped")

    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        lost = lose_confirmation(gateway, monkeypatch, write_run, landed, also=stop_all)
        gate.release()
        assert await gateway.runner.wait_idle(10)
        assert lost == ["lost"]
        await client.ok("turn.stop", turnId=sent["turnId"])
        session = Session.objects.filter(pk=sent["sessionId"])
        await in_database(session.update, lease_expires_at=None)
        await Heartbeat(gateway.runner, gateway.lanes, gateway.hub, gateway.config).beat()
        finished = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert finished["outcome"] == {"type": "cancelled"}
    rows = await in_database(answers_of, sent["turnId"])
    assert rows[0] == ("assistant", "active", "I look. ")
