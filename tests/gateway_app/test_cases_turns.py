"""Cases of turns that no other file holds: races, crashes that came long ago, stores that fail."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from gateway_app.services.recovery import release_runs
from sessions_app.models import Message, Session
from tests.factories import SessionFactory, TurnFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.busy.held import held_in_a_step, inbound, said, states_of
from tests.gateway_app.coherence.elsewhere import in_database, messages, texts_of
from tests.gateway_app.heart import beat
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_answers_each_message_that_arrives_as_a_turn_returns(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case E52: neither lost nor answered twice, wherever in the turn's end it arrives."""
    async with SocketClient(owner) as client:
        first = await client.say("0")
        session_id, turn_id = first["sessionId"], first["turnId"]
        for number in range(1, 25):
            # one hears the answer's end, the next one a row, the next one the run's end
            seen = len(client.events(session_id)) + number % 4
            await client.until(lambda seen=seen: len(client.events(session_id)) >= seen)
            turn_id = (await client.say(str(number), session_id))["turnId"]
        await client.finished(turn_id)
        assert await gateway.runner.wait_idle(60)
    assert await in_database(states_of, session_id) == ["completed"] * 25
    rows = await in_database(texts_of, UUID(session_id))
    said = [text for kind, text in rows if kind == "user"]
    assert said == [str(number) for number in range(25)]
    kinds = [kind for kind, _ in rows if kind != "session_meta"]
    assert kinds == ["user", "assistant"] * 25
    assert len(model.requests) == 25


async def test_it_runs_one_turn_at_a_time_though_two_processes_accept(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case B3, invariant I4: one thread, one instant, two processes."""
    async with SocketClient(owner) as client:
        session_id = UUID((await client.say("first"))["sessionId"])
        assert await gateway.runner.wait_idle(60)
    hosts = [gateway, other] * 6
    accepted = await asyncio.gather(
        *(host.runner.accept(inbound(owner, f"{place}"), session_id)
          for place, host in enumerate(hosts))
    )  # fmt: skip
    assert sum(one.status == "running" for one in accepted) <= 2
    for _ in range(30):
        for host in (gateway, other):
            assert await host.runner.wait_idle(60)
            await beat(host)
        if set(await in_database(states_of, str(session_id))) == {"completed"}:
            break
    assert await in_database(states_of, str(session_id)) == ["completed"] * 13
    rows = [kind for kind, _ in await in_database(texts_of, session_id) if kind != "session_meta"]
    assert rows == ["user", "assistant"] * 13
    assert [len(messages(model, number)) for number in range(13)] == [2 * n + 2 for n in range(13)]


@pytest.mark.parametrize(
    ("ago", "state", "kinds"),
    [
        (timedelta(minutes=58), "completed", ["user", "(assistant", "assistant"]),
        (timedelta(minutes=62), "interrupted", ["user", "assistant", "notice"]),
        (timedelta(days=3), "interrupted", ["user", "assistant", "notice"]),
    ],
)
async def test_it_goes_on_with_what_was_interrupted_within_an_hour_and_not_later(
    gateway: GatewayHost,
    other: GatewayHost,
    model: FakeModelServer,
    owner: User,
    ago: timedelta,
    state: str,
    kinds: list[str],
) -> None:
    """Case F75: three days later the turn is closed, and its history still loads."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("long ago")
        await client.until(lambda: client.text(sent["turnId"]))
        await gateway.runner.aclose()
        gate.release()
        turn = Turn.objects.filter(pk=sent["turnId"])
        await in_database(turn.update, started_at=timezone.now() - ago)
        ids = [UUID(sent["turnId"])]
        await in_database(release_runs, turn_ids=ids, lease_owner=gateway.lease_owner)
        await beat(other)
        assert await other.runner.wait_idle(60)
        assert await in_database(states_of, sent["sessionId"]) == [state]
        assert len(model.requests) == (2 if state == "completed" else 1)
        history = await client.ok("session.history", sessionId=sent["sessionId"])
    rows = [f"{'(' * (row['state'] != 'active')}{row['kind']}" for row in history["messages"]]
    assert rows == kinds


async def test_it_finishes_an_answer_that_everybody_left(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case G103: nobody stopped it, and whoever comes back reads all of it."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        last = client.events()[-1]["seq"]
    gate.release()
    assert await gateway.runner.wait_idle(60)
    assert await in_database(states_of, sent["sessionId"]) == ["completed"]
    async with SocketClient(owner) as again:
        replay = {"sessionId": sent["sessionId"], "after": last}
        assert (await again.ok("session.subscribe", **replay))["mode"] == "replay"
        assert (await again.finished(sent["turnId"]))["outcome"]["type"] == "success"
    assert client.text(sent["turnId"]) + again.text(sent["turnId"]) == "one two"


async def test_it_tells_two_answers_on_one_socket_apart(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case A6: both are written at once, a word here and a word there."""
    words = {name: [f"{name}{number} " for number in range(6)] for name in ("left", "right")}
    gates = {name: [Gate() for _ in range(6)] for name in words}
    model.default = lambda body: Script(
        tokens=words[name := body["messages"][-1]["content"]], gates=dict(enumerate(gates[name]))
    )
    async with SocketClient(owner) as client:
        sent = {name: await client.say(name) for name in words}
        for number in range(6):
            for name, one in sent.items():
                gates[name][number].release()
                told = "".join(words[name][: number + 1])
                await client.until(lambda one=one, told=told: client.text(one["turnId"]) == told)
        for one in sent.values():
            await client.finished(one["turnId"])
            frames = client.events(one["sessionId"])
            assert {frame.get("turnId", one["turnId"]) for frame in frames} == {one["turnId"]}
            await verified(client, one["sessionId"])
    for name, one in sent.items():
        rows = await in_database(said, one["sessionId"])
        assert rows == [("user", name), ("assistant", "".join(words[name]))]


async def test_it_answers_in_a_session_that_nobody_watches(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case G106: a send needs no subscription."""
    async with SocketClient(owner) as client:
        sent = await client.ok("message.send", clientMessageId="only", content="hello")
        assert await gateway.runner.wait_idle(60)
        assert client.events() == []
    rows = Message.objects.filter(session_id=sent["sessionId"], kind="assistant")
    assert await in_database(rows.count) == 1


async def test_it_takes_up_the_others_though_one_session_is_broken(
    gateway: GatewayHost, owner: User
) -> None:
    """A row that a bare SQL client wrote wrongly stops neither the heartbeat nor other turns."""

    def wait_in(**session: object) -> str:
        queued = TurnFactory(
            session=SessionFactory(owner=owner, **session), state="queued", block=None,
            started_at=None, finished_at=None,
        )  # fmt: skip
        return str(queued.session_id)

    broken = await in_database(wait_in, key="no route at all")
    whole = await in_database(wait_in)
    await beat(gateway)
    assert await gateway.runner.wait_idle(60)
    assert await in_database(states_of, whole) == ["completed"]
    assert await in_database(states_of, broken) == ["queued"]


async def test_it_ends_the_run_of_a_conversation_that_is_gone(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case B21: its row was deleted in the midst of a turn; nothing is left, and others go on."""
    async with SocketClient(owner) as client:
        gate, sent = await held_in_a_step(client, model)
        session = Session.objects.filter(pk=sent["sessionId"])
        await in_database(session.delete)
        gate.release()
        assert await gateway.runner.wait_idle(60)
        late = {"sessionId": sent["sessionId"], "content": "x", "clientMessageId": "late"}
        assert (await client.refused("message.send", **late))["code"] == "not_found"
        model.forget_scripts()
        other = await client.say("somebody else")
        assert (await client.finished(other["turnId"]))["type"] == "RUN_FINISHED"
    assert len(model.requests) == 2
    assert not await in_database(Message.objects.filter(session_id=sent["sessionId"]).exists)


class TestASilentModel:
    @pytest.fixture
    def config(self, config: GatewayConfig) -> GatewayConfig:
        return replace(config, first_token_timeout_s=0.2)

    async def test_it_keeps_the_message_that_nothing_came_of(
        self, gateway: GatewayHost, model: FakeModelServer, owner: User
    ) -> None:
        """Case F67: the client is gone as well; the turn is closed, and says why."""
        gate = Gate()
        model.script(Script(headers_gate=gate))
        async with SocketClient(owner) as client:
            sent = await client.say("hello")
        assert await gateway.runner.wait_idle(30)
        gate.release()
        assert await in_database(states_of, sent["sessionId"]) == ["failed"]
        rows = await in_database(said, sent["sessionId"])
        assert [kind for kind, _ in rows] == ["user", "notice"]
        assert rows[0] == ("user", "hello")
