"""Turns over the websocket: queue, stop, failure, retry, edit, and what changes beside them."""

import json
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection

from gateway_app.host import GatewayHost
from gateway_app.services import queue as queues
from sessions_app.fields import dump_json
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.busy.held import held, rows_of, states_of
from tests.gateway_app.coherence.elsewhere import in_database
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


def wire(model: FakeModelServer, number: int) -> list[tuple[str, str]]:
    """(role, content) of a request's messages, without the system prompt."""
    messages = json.loads(model.requests[number].body)["messages"]
    return [(one["role"], one["content"]) for one in messages if one["role"] != "system"]


async def test_it_runs_queued_messages_in_order_with_one_agent(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        session_id = sent["sessionId"]
        agent = gateway.cache.get(UUID(session_id))
        queued = [await client.say(f"next {n}", session_id) for n in range(5)]
        assert [one["status"] for one in queued] == ["queued"] * 5
        assert [one["place"] for one in queued] == [1, 2, 3, 4, 5]
        gate.release()
        for one in queued:
            finished = await client.finished(one["turnId"])
            assert finished["metadata"]["hermes"]["cache"]["verdict"] == "reuse"
        assert gateway.cache.get(UUID(session_id)) is agent
    rows = await in_database(rows_of, session_id)
    assert [text for kind, _, text in rows if kind == "user"] == [
        "first", *(f"next {n}" for n in range(5)),
    ]  # fmt: skip
    assert await in_database(states_of, session_id) == ["completed"] * 6


async def test_it_refuses_a_busy_session_when_asked_to(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        error = await client.refused(
            "message.send",
            sessionId=sent["sessionId"],
            content="no",
            clientMessageId="c-no",
            whenBusy="reject",
        )
        assert error["code"] == "busy"
        gate.release()
        await client.finished(sent["turnId"])
    assert len(await in_database(states_of, sent["sessionId"])) == 1


async def test_it_tells_when_the_queue_is_full(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        for number in range(32):
            await client.say(f"{number}", sent["sessionId"])
        error = await client.refused(
            "message.send", sessionId=sent["sessionId"], content="33", clientMessageId="c33"
        )
        assert error["code"] == "queue_full"
        await client.ok("turn.stop", sessionId=sent["sessionId"], clearQueue=True)
        await client.finished(sent["turnId"])
        gate.release()
    assert await in_database(states_of, sent["sessionId"]) == ["stopped"] * 33


async def test_it_edits_and_removes_what_waits(
    gateway: GatewayHost, model: FakeModelServer, owner: User, stranger: User
) -> None:
    async with SocketClient(owner) as client, SocketClient(stranger) as other:
        gate, sent = await held(client, model)
        kept = await client.say("keep", sent["sessionId"])
        gone = await client.say("drop", sent["sessionId"])
        assert (await other.refused("queue.remove", turnId=gone["turnId"]))["code"] == "not_found"
        await client.ok("queue.edit", turnId=kept["turnId"], content="kept, changed")
        result = await client.ok("queue.remove", turnId=gone["turnId"])
        assert [item["turnId"] for item in result["queue"]] == [kept["turnId"]]
        gate.release()
        await client.finished(kept["turnId"])
        error = await client.refused("queue.edit", turnId=kept["turnId"], content="late")
        assert error["code"] == "invalid_frame"
    rows = await in_database(rows_of, sent["sessionId"])
    assert [text for kind, _, text in rows if kind == "user"] == ["first", "kept, changed"]


async def test_it_keeps_the_partial_answer_of_a_stopped_turn(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        await client.ok("turn.stop", turnId=sent["turnId"])
        finished = await client.finished(sent["turnId"])
        assert finished["outcome"] == {"type": "cancelled"}
        await client.ok("turn.stop", turnId=sent["turnId"])
        await model.requests[0].ended.wait()
        assert model.requests[0].closed_by_client
        gate.release()
        follow = await client.say("continue", sent["sessionId"])
        await client.finished(follow["turnId"])
    assert await in_database(rows_of, sent["sessionId"]) == [
        ("user", "active", "first"),
        ("assistant", "active", "one "),
        ("user", "active", "continue"),
        ("assistant", "active", "Hello, world!"),
    ]
    assert wire(model, 1) == [("user", "first"), ("assistant", "one "), ("user", "continue")]


async def test_it_closes_a_turn_that_was_stopped_before_its_first_word(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(headers_gate=gate))
    async with SocketClient(owner) as client:
        sent = await client.say("first")
        await model.request(0)
        await client.ok("turn.stop", sessionId=sent["sessionId"])
        follow = await client.say("second", sent["sessionId"])
        assert (await client.finished(sent["turnId"]))["outcome"]["type"] == "cancelled"
        assert (await client.finished(follow["turnId"]))["type"] == "RUN_FINISHED"
        gate.release()
    rows = await in_database(rows_of, sent["sessionId"])
    assert [row[0] for row in rows] == ["user", "notice", "user", "assistant"]


async def test_it_obeys_a_stop_that_another_process_recorded(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        await in_database(
            queues.stop_turn,
            user_id=owner.pk,
            session_id=UUID(sent["sessionId"]),
            turn_id=None,
        )
        finished = await client.finished(sent["turnId"])
        assert finished["outcome"]["type"] == "cancelled"
        gate.release()


async def test_it_answers_each_message_that_follows_a_stop_at_once(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gates = [Gate() for _ in range(20)]
    for gate in gates:
        model.script(Script(tokens=["never"], gates={0: gate}), Script(tokens=["its own answer"]))
    async with SocketClient(owner) as client:
        session_id = None
        for number in range(20):
            first = await client.say(f"stop me {number}", session_id)
            session_id = first["sessionId"]
            await model.request(2 * number)
            await client.ok("turn.stop", sessionId=session_id)
            second = await client.say(f"answer me {number}", session_id)
            finished = await client.finished(second["turnId"])
            assert finished["outcome"]["type"] == "success"
            assert client.text(second["turnId"]) == "its own answer"
            assert (await client.finished(first["turnId"]))["outcome"]["type"] == "cancelled"
    for gate in gates:
        gate.release()


async def test_it_closes_a_failed_turn_with_a_notice_and_retries_it(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(status=500), Script(tokens=["fine"]))
    async with SocketClient(owner) as client:
        sent = await client.say("first")
        failed = await client.finished(sent["turnId"])
        assert (failed["type"], failed["code"]) == ("RUN_ERROR", "model_unavailable")
        again = await client.ok(
            "turn.retry",
            sessionId=sent["sessionId"],
            turnId=sent["turnId"],
            clientMessageId="retry-1",
        )
        finished = await client.finished(again["turnId"])
        assert finished["type"] == "RUN_FINISHED"
    rows = await in_database(rows_of, sent["sessionId"])
    assert [(row[0], row[1]) for row in rows] == [
        ("user", "active"),
        ("notice", "branched"),
        ("assistant", "active"),
    ]
    assert wire(model, 1) == [("user", "first")]


async def test_it_edits_a_message_on_a_branch_and_switches_back(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["A1"]), Script(tokens=["A2"]), Script(tokens=["B2"]))
    async with SocketClient(owner) as client:
        first = await client.say("one")
        await client.finished(first["turnId"])
        second = await client.say("two", first["sessionId"])
        await client.finished(second["turnId"])
        old = await in_database(lambda: Message.objects.get(turn_id=second["turnId"], kind="user"))
        edited = await client.ok(
            "message.edit",
            sessionId=first["sessionId"],
            messageId=str(old.pk),
            content="two, edited",
            clientMessageId="edit-1",
        )
        finished = await client.finished(edited["turnId"])
        assert finished["metadata"]["hermes"]["cache"]["verdict"] == "rebuild"
        await client.ok("branch.select", sessionId=first["sessionId"], messageId=str(old.pk))
    rows = await in_database(rows_of, first["sessionId"])
    assert [text for _, state, text in rows if state == "active"] == ["one", "A1", "two", "A2"]
    assert [text for _, state, text in rows if state == "branched"] == ["two, edited", "B2"]
    assert wire(model, 2) == [("user", "one"), ("assistant", "A1"), ("user", "two, edited")]


async def test_it_answers_a_repeat_with_the_same_turn_and_refuses_another_body(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello", cid="same")
        await client.finished(sent["turnId"])
        again = await client.say("hello", sent["sessionId"], cid="same")
        assert (again["turnId"], again["replayed"], again["status"]) == (
            sent["turnId"], True, "completed",
        )  # fmt: skip
        error = await client.refused(
            "message.send", sessionId=sent["sessionId"], content="other", clientMessageId="same"
        )
        assert error["code"] == "idempotency_mismatch"


async def test_it_opens_a_session_with_the_first_message(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        one = await client.ok("message.send", content="hello", clientMessageId="c1")
        two = await client.ok("message.send", content="hello", clientMessageId="c1")
        assert (one["sessionId"], one["turnId"]) == (two["sessionId"], two["turnId"])
        assert (one["replayed"], two["replayed"]) == (False, True)
        listed = await client.ok("session.list")
        assert [item["title"] for item in listed["sessions"]] == ["hello"]


async def test_it_rebuilds_when_the_model_changes(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("one")
        await client.finished(first["turnId"])
        await client.ok(
            "session.update", sessionId=first["sessionId"], model="openai:other", title="Renamed"
        )
        second = await client.say("two", first["sessionId"])
        finished = await client.finished(second["turnId"])
        cache = finished["metadata"]["hermes"]["cache"]
        assert (cache["verdict"], cache["reason"]) == ("rebuild", "reconfigured")
    assert json.loads(model.requests[1].body)["model"] == "other"


async def test_it_catches_up_with_a_row_that_others_append(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("one")
        await client.finished(first["turnId"])
        parts = dump_json([{"type": "text", "text": "from outside"}])

        def foreign() -> None:
            value = UUID(first["sessionId"])
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO sessions_app_message (session_id, kind, parts)"
                    " VALUES (%s, 'operator', %s)",
                    [value.hex if connection.vendor == "sqlite" else value, parts],
                )

        await in_database(foreign)
        second = await client.say("two", first["sessionId"])
        finished = await client.finished(second["turnId"])
        assert finished["metadata"]["hermes"]["cache"]["verdict"] == "catch_up"
        announced = [
            frame["event"]["value"]
            for frame in client.events(turn_id=second["turnId"])
            if frame["event"].get("name") == "hermes.message"
        ]
        assert [row["kind"] for row in announced] == ["user", "operator", "assistant"]
    assert [content for _, content in wire(model, 1)][-1] == "two"
    assert any("from outside" in content for _, content in wire(model, 1))


async def test_it_tells_clients_of_a_raw_edit_and_rebuilds(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("one")
        await client.finished(first["turnId"])
        parts = [{"type": "text", "text": "edited"}]
        edited = Message.objects.filter(turn_id=first["turnId"], kind="user")
        await in_database(edited.update, parts=parts)
        second = await client.say("two", first["sessionId"])
        finished = await client.finished(second["turnId"])
        cache = finished["metadata"]["hermes"]["cache"]
        assert (cache["verdict"], cache["reason"]) == ("rebuild", "rewritten")
        names = [f["event"].get("name") for f in client.events(turn_id=second["turnId"])]
        assert "hermes.rewritten" in names
    assert wire(model, 1)[0] == ("user", "edited")


async def test_it_stops_an_answer_that_does_not_end_and_keeps_what_came(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    piece = "x" * 500_000
    model.script(Script(tokens=[piece] * 12))
    async with SocketClient(owner) as client:
        sent = await client.say("go")
        failed = await client.finished(sent["turnId"])
        assert (failed["type"], failed["code"]) == ("RUN_ERROR", "limit")
    rows = await in_database(rows_of, sent["sessionId"])
    assert [(row[0], row[1]) for row in rows] == [
        ("user", "active"),
        ("assistant", "active"),
        ("notice", "active"),
    ]
    assert rows[1][2] == piece * 8
