"""A message to a busy session: it interrupts what runs, or steers it, and is never lost or doubled.

Cases E52, E60, E61.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import pytest
import pytest_asyncio
from django.contrib.auth.models import User
from django.db import transaction

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.services.turns import Accepted, accept_turn
from gateway_app.turns.heartbeat import Heartbeat
from sessions_app.models import Message, Session
from tests.fake_model_server import FakeModelServer, Gate, Json, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import in_database, messages, texts_of
from tests.session_log import verified
from tests.socket_client import SocketClient
from tests.statements import every_statement

pytestmark = pytest.mark.django_db(transaction=True)

LOOK = [ToolCall("a1", "look")]


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """A process that obeys soon."""
    return replace(config, heartbeat_s=0.05)


@pytest_asyncio.fixture
async def other(gateway: GatewayHost) -> AsyncIterator[GatewayHost]:
    """Another process on the same database."""
    host = GatewayHost(replace(gateway.config, postgres_threads=2))
    await host.start(checkpoint=False)
    yield host
    await host.aclose()


def inbound(owner: User, text: str, when_busy: str) -> Inbound:
    return Inbound(
        author_id=owner.pk,
        author_name=owner.username,
        client_message_id=text,
        body_hash="",
        content=[{"type": "text", "text": text}],
        when_busy=when_busy,
    )


def accept(message: Inbound, session_id: str) -> Accepted:
    """As another process accepts it, which runs nothing here."""
    return accept_turn(inbound=message, session_id=UUID(session_id), lease_owner="elsewhere")


def said(session_id: str) -> list[tuple[str, str]]:
    """(kind, text) of the active rows that a person sees."""
    return [one for one in texts_of(UUID(session_id)) if one[0] != "session_meta"]


def states_of(session_id: str) -> list[str]:
    turns = Turn.objects.filter(session_id=session_id).order_by("accepted_seq")
    return list(turns.values_list("state", flat=True))


async def held(client: SocketClient, model: FakeModelServer, *then: Script) -> tuple[Gate, Json]:
    """A turn that has shown "one" and waits at a gate before "two"."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}), *then)
    sent = await client.say("first")
    await client.until(lambda: client.text(sent["turnId"]))
    return gate, sent


async def held_in_a_step(client: SocketClient, model: FakeModelServer) -> tuple[Gate, Json]:
    """A turn that waits at a gate before it calls a tool; then come "seen" and plain answers."""
    gate = Gate()
    model.script(
        Script(tokens=["I look. "], tool_calls=LOOK, gates={1: gate}), Script(tokens=["seen"])
    )
    sent = await client.say("first")
    await client.until(lambda: client.text(sent["turnId"]))
    return gate, sent


# --- interrupt ---


async def test_it_stops_what_runs_and_answers_an_interrupt_before_all_that_wait(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held(client, model)
        session_id = first["sessionId"]
        waiting = await client.say("later", session_id)
        now = await client.say("now!", session_id, whenBusy="interrupt")
        assert (now["status"], now["place"]) == ("queued", 1)
        assert (await client.finished(first["turnId"]))["outcome"]["type"] == "cancelled"
        await client.finished(now["turnId"])
        await client.finished(waiting["turnId"])
        await verified(client, session_id)
        gate.release()
    assert await in_database(said, session_id) == [
        ("user", "first"), ("assistant", "one "), ("user", "now!"),
        ("assistant", "Hello, world!"), ("user", "later"), ("assistant", "Hello, world!"),
    ]  # fmt: skip


async def test_it_runs_the_last_of_two_interrupts_first(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    @transaction.atomic
    def interrupt(session_id: str) -> list[Accepted]:
        """Twice, before anybody can obey."""
        return [accept(inbound(owner, text, "interrupt"), session_id) for text in ("a", "b")]

    async with SocketClient(owner) as client:
        gate, first = await held(client, model)
        accepted = await in_database(interrupt, first["sessionId"])
        assert [one.place for one in accepted] == [1, 1]
        for one in accepted:
            await client.finished(str(one.turn_id))
        await verified(client, first["sessionId"])
        gate.release()
    rows = await in_database(said, first["sessionId"])
    assert [text for kind, text in rows if kind == "user"] == ["first", "b", "a"]


async def test_it_interrupts_a_turn_of_another_process(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held(client, model)
        session_id = first["sessionId"]
        accepted = await other.runner.accept(inbound(owner, "now!", "interrupt"), UUID(session_id))
        assert (accepted.status, accepted.place) == ("queued", 1)
        assert (await client.finished(first["turnId"]))["outcome"]["type"] == "cancelled"
        await client.finished(str(accepted.turn_id))
        gate.release()
    assert [kind for kind, _ in await in_database(said, session_id)] == [
        "user", "assistant", "user", "assistant",
    ]  # fmt: skip


async def test_it_takes_an_interrupt_once_wherever_in_the_turns_end_it_arrives(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case E52: each message is a turn of its own; one that waits is overtaken by the next."""
    async with SocketClient(owner) as client:
        first = await client.say("0")
        session_id = first["sessionId"]
        turns = [first["turnId"]]
        for number in range(1, 25):
            seen = len(client.events(session_id)) + number % 5
            await client.until(lambda seen=seen: len(client.events(session_id)) >= seen)
            sent = await client.say(str(number), session_id, whenBusy="interrupt")
            turns.append(sent["turnId"])
        for turn_id in turns:
            await client.finished(turn_id)
        assert await gateway.runner.wait_idle(10)
        await verified(client, session_id)
    texts = [text for kind, text in await in_database(said, session_id) if kind == "user"]
    assert sorted(texts, key=int) == [str(number) for number in range(25)]
    states = await in_database(states_of, session_id)
    assert set(states) <= {"completed", "stopped"}
    assert "completed" in states


async def test_it_edits_the_message_whose_answer_is_being_written(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held(client, model, Script(tokens=["better"]))
        session_id = first["sessionId"]
        row = await in_database(lambda: Message.objects.get(session_id=session_id, kind="user"))
        edit: Json = {"sessionId": session_id, "messageId": str(row.pk), "content": "first, edited"}
        refused = await client.refused("message.edit", clientMessageId="e0", **edit)
        assert refused["code"] == "busy"
        edited = await client.ok("message.edit", clientMessageId="e1", whenBusy="interrupt", **edit)
        second = await client.refused(
            "message.edit", clientMessageId="e2", whenBusy="interrupt", **edit
        )
        assert second["code"] in {"busy", "invalid_frame"}
        await client.finished(edited["turnId"])
        await verified(client, session_id)
        gate.release()
    assert await in_database(said, session_id) == [
        ("user", "first, edited"), ("assistant", "better"),
    ]  # fmt: skip
    assert messages(model, 1)[1:] == [("user", "first, edited")]


async def test_it_tries_the_running_turn_again(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held(client, model, Script(tokens=["better"]))
        again = await client.ok(
            "turn.retry",
            sessionId=first["sessionId"],
            turnId=first["turnId"],
            clientMessageId="r1",
            whenBusy="interrupt",
        )
        assert again["status"] == "queued"
        await client.finished(again["turnId"])
        await verified(client, first["sessionId"])
        gate.release()
    assert await in_database(said, first["sessionId"]) == [
        ("user", "first"), ("assistant", "better"),
    ]  # fmt: skip
    assert messages(model, 1)[1:] == [("user", "first")]


async def test_it_answers_an_edit_whose_message_went_away_while_it_waited(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Behind what there is: it was acknowledged."""

    @transaction.atomic
    def edit_and_hide(session_id: str, old: Message) -> Accepted:
        edit = replace(inbound(owner, "zero, edited", "interrupt"), edit_of=old.pk)
        accepted = accept(edit, session_id)
        Message.objects.filter(pk=old.pk).update(state="hidden")
        return accepted

    async with SocketClient(owner) as client:
        before = await client.say("zero")
        session_id = before["sessionId"]
        await client.finished(before["turnId"])
        old = await in_database(lambda: Message.objects.get(session_id=session_id, kind="user"))
        gate = Gate()
        model.script(Script(headers_gate=gate))
        await client.say("first", session_id)
        await model.request(1)
        edited = await in_database(edit_and_hide, session_id, old)
        assert (await client.finished(str(edited.turn_id)))["type"] == "RUN_FINISHED"
        await verified(client, session_id)
        gate.release()
    texts = [text for kind, text in await in_database(said, session_id) if kind == "user"]
    assert texts == ["first", "zero, edited"]


async def test_it_sends_a_waiting_message_now(
    gateway: GatewayHost, model: FakeModelServer, owner: User, stranger: User
) -> None:
    async with SocketClient(owner) as client, SocketClient(stranger) as nobody:
        gate, first = await held(client, model)
        session_id = first["sessionId"]
        waiting = [await client.say(text, session_id) for text in ("b", "c")]
        change: Json = {"turnId": waiting[1]["turnId"], "whenBusy": "interrupt"}
        assert (await nobody.refused("queue.edit", **change))["code"] == "not_found"
        assert (await client.refused("queue.edit", turnId=change["turnId"]))["code"] == (
            "invalid_frame"
        )
        reject = await client.refused("queue.edit", turnId=change["turnId"], whenBusy="reject")
        assert reject["code"] == "unsupported"
        result = await client.ok("queue.edit", **change)
        assert [item["turnId"] for item in result["queue"]] == [
            waiting[1]["turnId"], waiting[0]["turnId"],
        ]  # fmt: skip
        for one in waiting:
            await client.finished(one["turnId"])
        gate.release()
    texts = [text for kind, text in await in_database(said, session_id) if kind == "user"]
    assert texts == ["first", "c", "b"]


# --- steer ---


async def test_it_writes_a_steering_message_after_the_tool_step_of_the_run(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case E60: a row of the transcript, and in the next model call."""
    async with SocketClient(owner) as client:
        gate, first = await held_in_a_step(client, model)
        session_id = first["sessionId"]
        queued = await client.say("later", session_id)
        steer: Json = {"cid": "steer-1", "whenBusy": "steer"}
        steered = await client.say("look left", session_id, **steer)
        assert steered["status"] == "steered"
        assert (await client.say("look left", session_id, **steer))["status"] == "steered"
        gate.release()
        finished = await client.finished(first["turnId"])
        await client.finished(queued["turnId"])
        frames = await verified(client, session_id)
        again = await client.say("look left", session_id, **steer)
    assert (again["turnId"], again["status"]) == (steered["turnId"], "absorbed")
    assert finished["metadata"]["hermes"]["cache"]["verdict"] == "reuse"
    assert messages(model, 1)[1:] == [
        ("user", "first"), ("assistant", "I look. "), ("tool", "There is no tool 'look'."),
        ("user", "look left"),
    ]  # fmt: skip
    assert await in_database(states_of, session_id) == ["completed", "completed", "absorbed"]
    shown = [frame for frame in frames if frame["event"].get("name") == "hermes.message"]
    [row] = [one for one in shown if one["event"]["value"].get("clientMessageId") == "steer-1"]
    assert row["turnId"] == first["turnId"]
    queues = [frame["event"]["value"]["queue"] for frame in frames
              if frame["event"].get("name") == "hermes.queue"]  # fmt: skip
    assert [[item["whenBusy"] for item in queue] for queue in queues] == [
        ["queue"], ["queue", "steer"], ["queue"], [],
    ]  # fmt: skip


async def test_it_answers_a_steering_message_that_no_step_took_as_a_turn(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held(client, model)
        steered = await client.say("left!", first["sessionId"], whenBusy="steer")
        assert steered["status"] == "steered"
        gate.release()
        assert (await client.finished(steered["turnId"]))["type"] == "RUN_FINISHED"
        await verified(client, first["sessionId"])
    assert await in_database(states_of, first["sessionId"]) == ["completed", "completed"]


async def test_it_runs_a_steering_message_where_nothing_runs(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case E61."""
    async with SocketClient(owner) as client:
        sent = await client.say("left!", whenBusy="steer")
        assert sent["status"] == "running"
        await client.finished(sent["turnId"])


async def test_it_steers_a_run_of_another_process(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held_in_a_step(client, model)
        session_id = UUID(first["sessionId"])
        accepted = await other.runner.accept(inbound(owner, "left!", "steer"), session_id)
        assert accepted.status == "steered"
        gate.release()
        await client.finished(first["turnId"])
    assert messages(model, 1)[-1] == ("user", "left!")


async def test_it_takes_a_steering_message_once_wherever_in_the_run_it_arrives(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """It is a row of the run's block or a turn of its own: never both, never neither."""

    def answer(body: Json) -> Script:
        tools = sum(one["role"] == "tool" for one in body["messages"][-2:])
        return Script(tokens=["done"]) if tools else Script(tool_calls=LOOK)

    model.default = answer
    async with SocketClient(owner) as client:
        session_id = (await client.say("0"))["sessionId"]
        for number in range(1, 25):
            seen = len(client.events(session_id)) + number % 6
            await client.until(lambda seen=seen: len(client.events(session_id)) >= seen)
            await client.say(str(number), session_id, whenBusy="steer")
        await client.until(lambda: client.events(session_id)[-1]["event"]["type"] == "RUN_FINISHED")
        assert await gateway.runner.wait_idle(10)
        await Heartbeat(gateway.runner, gateway.lanes, gateway.hub, gateway.config).beat()
        assert await gateway.runner.wait_idle(10)
        await verified(client, session_id)
    texts = [text for kind, text in await in_database(said, session_id) if kind == "user"]
    assert texts == [str(number) for number in range(25)]
    assert set(await in_database(states_of, session_id)) <= {"completed", "absorbed"}


async def test_it_makes_a_message_that_waits_steer_and_lets_it_be_removed(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held_in_a_step(client, model)
        kept = await client.say("left", first["sessionId"])
        gone = await client.say("right", first["sessionId"], whenBusy="steer")
        await client.ok("queue.edit", turnId=kept["turnId"], content="left!", whenBusy="steer")
        await client.ok("queue.remove", turnId=gone["turnId"])
        gate.release()
        await client.finished(first["turnId"])
    assert messages(model, 1)[-2:] == [("tool", "There is no tool 'look'."), ("user", "left!")]
    assert await in_database(states_of, first["sessionId"]) == ["completed", "absorbed", "stopped"]


async def test_it_steers_the_next_run_of_a_turn_whose_process_died(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["I "], tool_calls=LOOK, gates={1: Gate()}), Script(tool_calls=LOOK))
    async with SocketClient(owner) as client:
        first = await client.say("first")
        await client.until(lambda: client.text(first["turnId"]))
        await client.say("left!", first["sessionId"], whenBusy="steer")
        await gateway.runner.aclose()
        gateway.runner.draining = True
        session = Session.objects.filter(pk=first["sessionId"])
        await in_database(session.update, lease_expires_at=None)
        await Heartbeat(other.runner, other.lanes, other.hub, other.config).beat()
        assert await other.runner.wait_idle(10)
    assert messages(model, 2)[-1] == ("user", "left!")
    assert await in_database(states_of, first["sessionId"]) == ["completed", "absorbed"]


async def test_it_pays_for_steering_only_when_somebody_steers(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    counts = {}
    async with SocketClient(owner) as client:
        for steers in (0, 1, 3):
            gate, first = await held_in_a_step(client, model)
            for number in range(steers):
                await client.say(f"left {number}", first["sessionId"], whenBusy="steer")
            with every_statement() as statements:
                gate.release()
                await client.finished(first["turnId"])
            rows = f"INSERT INTO {Message._meta.db_table}"
            steps = {one.transaction for one in statements.others if rows in one.sql}
            counts[steers] = sum(one.transaction == min(steps) for one in statements.others)
    assert counts[0] == 4, counts
    assert counts[1] == counts[3] <= counts[0] + 5, counts
