"""A commit whose confirmation is lost on the way: nobody knows whether it happened.

It did, here, or it did not: nothing is logged or stored twice, and nothing is left out.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError

from gateway_app.config import GatewayConfig
from gateway_app.event_store import flush_runs
from gateway_app.host import GatewayHost
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.services.recovery import find_orphans, recover_turn, release_runs
from gateway_app.services.runs import write_run
from gateway_app.services.turns import accept_turn, start_next_turn
from gateway_app.turns.heartbeat import Heartbeat
from sessions_app.models import Message
from tests.factories import QueuedTurnFactory, SessionFactory
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import in_database
from tests.gateway_app.heart import beat, counted
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """The heart beats when a test says so; a lease would run out long after it."""
    return replace(config, heartbeat_s=3600, storage_retry_s=0.05)


def runs_of(turn_id: str) -> tuple[str, int]:
    found = Turn.objects.filter(pk=turn_id).values_list("state", "runs").get()
    return found[0], found[1]


class Lose(Protocol):
    """Lets the next call of `wanted` break off, after or before its commit; notes that it did.

    Meanwhile `also` happens, on the event loop.
    """

    def __call__(
        self, wanted: Callable[..., Any], also: Callable[[], None] = lambda: None
    ) -> list[str]: ...


@pytest.fixture(params=[True, False], ids=["landed", "lost"])
def landed(request: pytest.FixtureRequest) -> bool:
    """Whether what was lost on the way was committed."""
    return bool(request.param)


@pytest.fixture
def lose(gateway: GatewayHost, monkeypatch: pytest.MonkeyPatch, landed: bool) -> Lose:
    write = gateway.lanes.write

    def lose(wanted: Callable[..., Any], also: Callable[[], None] = lambda: None) -> list[str]:
        lost: list[str] = []

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

    return lose


def answers_of(turn_id: str) -> list[tuple[str, str, str]]:
    rows = Message.objects.filter(turn_id=turn_id).exclude(kind__in=["user", "session_meta"])
    return [
        (row.kind, row.state, "".join(part.get("text", "") for part in row.parts))
        for row in rows.order_by("position")
    ]


async def test_it_logs_a_flush_once(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose
) -> None:
    gate, last = Gate(), Gate()
    model.script(Script(tokens=["one ", "one ", "one ", "two"], gates={1: gate, 3: last}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        lost = lose(flush_runs)
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


async def test_it_ends_a_turn_once(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        await client.finished(first["turnId"])
        lost = lose(write_run)
        sent = await client.say("again", first["sessionId"])
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert lost == ["lost"]
    assert await in_database(answers_of, sent["turnId"]) == [
        ("assistant", "active", "Hello, world!")
    ]


async def test_it_goes_on_from_a_step_in_doubt(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose
) -> None:
    """The run is left, and whoever recovers the turn reads what became of the step.

    One that was not stored is kept if the log tells of it, and made again otherwise.
    """
    call = Script(tokens=["I look. "], tool_calls=[ToolCall("a1", "look")])
    done = Script(tokens=["done"])
    model.default = lambda body: done if body["messages"][-1]["role"] == "tool" else call
    async with SocketClient(owner) as client:
        lost = lose(write_run)
        sent = await client.say("hello")
        assert await gateway.runner.wait_idle(60)
        assert lost == ["lost"]
        await beat(gateway)
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    rows = await in_database(answers_of, sent["turnId"])
    assert [(kind, text) for kind, state, text in rows if state == "active"] == [
        ("assistant", "I look. "), ("tool", ""), ("assistant", "done"),
    ]  # fmt: skip
    assert await in_database(Turn.objects.filter(runs=2, state="completed").count) == 1


async def test_it_keeps_what_was_shown_when_a_step_in_doubt_is_stopped(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose
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
        lost = lose(write_run, also=stop_all)
        gate.release()
        assert await gateway.runner.wait_idle(60)
        assert lost == ["lost"]
        await client.ok("turn.stop", turnId=sent["turnId"])
        await beat(gateway)
        finished = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert finished["outcome"] == {"type": "cancelled"}
    rows = await in_database(answers_of, sent["turnId"])
    assert rows[0] == ("assistant", "active", "I look. ")


async def test_it_runs_at_once_what_an_end_in_doubt_started(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose, landed: bool
) -> None:
    """This process holds the next turn's lease: nobody waits until it runs out."""
    gate, before = Gate(), counted("completed")
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        await client.until(lambda: client.text(first["turnId"]))
        second = await client.say("and now?", first["sessionId"])
        lost = lose(write_run)
        gate.release()
        await client.finished(first["turnId"])
        assert await gateway.runner.wait_idle(60)
        assert lost == ["lost"]
        await beat(gateway)
        await client.finished(second["turnId"])
        await verified(client, first["sessionId"])
    assert await in_database(runs_of, first["turnId"]) == ("completed", 1)
    assert await in_database(runs_of, second["turnId"]) == ("completed", 1 + landed)
    assert counted("completed") == before + 2


async def test_it_runs_at_once_what_an_accept_in_doubt_started(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose, landed: bool
) -> None:
    async with SocketClient(owner) as client:
        session_id = (await client.say("hello"))["sessionId"]
        assert await gateway.runner.wait_idle(60)
        lost = lose(accept_turn)
        message = {"sessionId": session_id, "content": "again", "clientMessageId": "a"}
        error = await client.refused("message.send", **message)
        assert (error["code"], error["retryable"], lost) == ("internal", True, ["lost"])
        again = await client.ok("message.send", **message)
        await beat(gateway)
        await client.finished(again["turnId"])
        await verified(client, session_id)
    assert await in_database(runs_of, again["turnId"]) == ("completed", 1 + landed)


async def test_it_runs_at_the_next_beat_what_was_started_in_doubt(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose, landed: bool
) -> None:
    session = await sync_to_async(SessionFactory)(owner=owner)
    turn = await sync_to_async(QueuedTurnFactory)(session=session)
    lost = lose(start_next_turn)
    await beat(gateway)
    assert (lost, gateway.runner.live) == (["lost"], {})
    await beat(gateway)
    assert await gateway.runner.wait_idle(60)
    assert await in_database(runs_of, str(turn.pk)) == ("completed", 1 + landed)


async def test_it_runs_at_the_next_beat_what_was_recovered_in_doubt(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose, landed: bool
) -> None:
    model.script(Script(tokens=["one ", "two"], gates={1: Gate()}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        await gateway.runner.aclose()
        gateway.runner.draining = False
        lost = lose(recover_turn)
        await beat(gateway)
        assert (lost, gateway.runner.live) == (["lost"], {})
        await beat(gateway)
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert await in_database(runs_of, sent["turnId"]) == ("completed", 2 + landed)


async def test_it_counts_once_what_was_ended_by_a_recovery_in_doubt(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose
) -> None:
    """A person stopped it, and its process died before it heard."""
    model.script(Script(tokens=["one ", "two"], gates={1: Gate()}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        await gateway.runner.aclose()
        await client.ok("turn.stop", turnId=sent["turnId"])
        gateway.runner.draining = False
        heart = Heartbeat(gateway.runner, gateway.lanes, gateway.hub, gateway.config)
        lost, before = lose(recover_turn), counted("stopped")
        for _ in range(3):
            await heart.beat()
        assert (lost, counted("stopped")) == (["lost"], before + 1)
        await client.finished(sent["turnId"])
    assert await in_database(runs_of, sent["turnId"]) == ("stopped", 1)


async def test_it_drains_to_the_end_though_nobody_knows_what_was_released(
    gateway: GatewayHost, model: FakeModelServer, owner: User, lose: Lose
) -> None:
    """A run that was not released is an orphan all the same when its lease is over."""
    model.script(Script(tokens=["one ", "two"], gates={1: Gate()}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        lost = lose(release_runs)
        await gateway.drain(0)
        assert (lost, client.closed) == (["lost"], 4012)
    assert await in_database(runs_of, sent["turnId"]) == ("running", 1)


class Late:
    """Messages are accepted, and the news of it waits to be let go."""

    def __init__(self, gateway: GatewayHost, monkeypatch: pytest.MonkeyPatch) -> None:
        self.landed, self.let_go = asyncio.Event(), asyncio.Event()
        self._write = gateway.lanes.write
        monkeypatch.setattr(gateway.lanes, "write", self._delaying)

    def _delaying(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        future = self._write(call, *args, **kwargs)
        return self._late(future) if call is accept_turn else future

    async def _late(self, future: Any) -> Any:
        accepted = await future
        self.landed.set()
        await self.let_go.wait()
        return accepted


async def test_it_leaves_alone_what_it_is_about_to_run(
    gateway: GatewayHost, model: FakeModelServer, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is there to be read, and the news of its commit is on its way."""
    async with SocketClient(owner) as client:
        made = await client.ok("session.create", clientMessageId="new")
        session_id = made["session"]["id"]
        await client.ok("session.subscribe", sessionId=session_id)
        late = Late(gateway, monkeypatch)
        sending = asyncio.create_task(client.say("hello", session_id))
        await late.landed.wait()
        await beat(gateway)
        late.let_go.set()
        sent = await sending
        await client.finished(sent["turnId"])
    assert await in_database(runs_of, sent["turnId"]) == ("completed", 1)


async def test_it_leaves_to_others_what_it_is_about_to_run_when_it_drains(
    gateway: GatewayHost, model: FakeModelServer, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped with all others, not waited for, and free at once."""
    model.script(Script(tokens=["one ", "two"], gates={0: Gate()}))
    late = Late(gateway, monkeypatch)
    inbound = Inbound(owner.pk, "ann", "c", "", [{"type": "text", "text": "hello"}])
    accepting = asyncio.create_task(gateway.runner.accept(inbound, None))
    await late.landed.wait()
    draining = asyncio.create_task(gateway.drain(0))
    await asyncio.sleep(0)
    assert gateway.runner.draining
    late.let_go.set()
    accepted = await accepting
    await draining
    assert await in_database(runs_of, str(accepted.turn_id)) == ("running", 1)
    [orphan] = await in_database(find_orphans)
    assert orphan.turn_id == accepted.turn_id
