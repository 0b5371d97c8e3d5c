"""A message that interrupts what runs: it is never lost or doubled.

Case E52.
"""

from dataclasses import replace
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from gateway_app.host import GatewayHost
from gateway_app.services.turns import Accepted
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Json, Script
from tests.gateway_app.busy.held import accept, come, held, inbound, said, states_of
from tests.gateway_app.coherence.elsewhere import in_database, messages
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


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
            await come(client, session_id, number % 5)
            sent = await client.say(str(number), session_id, whenBusy="interrupt")
            turns.append(sent["turnId"])
        for turn_id in turns:
            await client.finished(turn_id)
        assert await gateway.runner.wait_idle(60)
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
