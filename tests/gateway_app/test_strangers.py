"""Nobody reads or writes another person's session by any command of the websocket."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app import protocol
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from sessions_app.models import Message, Session
from tests.factories import SuperuserFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Theirs:
    """Ids of the owner's session: a finished turn, a running one, a waiting one, a message."""

    session: str
    finished: str
    running: str
    waiting: str
    message: str


@pytest_asyncio.fixture
async def theirs(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> AsyncIterator[Theirs]:
    gate = Gate()
    model.script(Script(), Script(tokens=["so ", "far"], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("a secret")
        await client.finished(sent["turnId"])
        running = await client.say("another", sent["sessionId"])
        await client.until(lambda: client.text(running["turnId"]))
        waiting = await client.say("a third", sent["sessionId"])
        snapshot = await client.ok("session.history", sessionId=sent["sessionId"])
        yield Theirs(
            sent["sessionId"], sent["turnId"], running["turnId"], waiting["turnId"],
            snapshot["messages"][0]["id"],
        )  # fmt: skip
        gate.release()
        await client.finished(waiting["turnId"])


@sync_to_async
def everything() -> list[Any]:
    """Whatever a command could change."""
    clocks = Session.objects.order_by("pk").values_list(
        "pk", "title", "revision", "event_seq", "deleted_at", "archived", "agent", "model"
    )
    turns = Turn.objects.order_by("pk").values_list("pk", "state", "stop_requested_at", "content")
    rows = Message.objects.order_by("pk").values_list("pk", "state", "parts")
    return [list(clocks), list(turns), list(rows)]


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("session.subscribe", {}),
    ("session.subscribe", {"after": 0}),
    ("session.history", {}),
    ("session.update", {"title": "mine"}),
    ("session.seen", {"revision": 1}),
    ("session.delete", {}),
    ("session.restore", {}),
    ("message.send", {"content": "Hi", "clientMessageId": "m"}),
    ("message.send", {"content": "Hi", "clientMessageId": "m", "whenBusy": "interrupt"}),
    ("message.send", {"content": "Hi", "clientMessageId": "m", "whenBusy": "steer"}),
    ("message.edit", {"messageId": "message", "content": "Hi", "clientMessageId": "m"}),
    ("turn.retry", {"turnId": "finished", "clientMessageId": "m"}),
    ("branch.select", {"messageId": "message"}),
    ("turn.stop", {}),
    ("turn.stop", {"clearQueue": True}),
    ("turn.stop", {"turnId": "running"}),
    ("turn.stop", {"turnId": "running", "sessionId": None}),
    ("turn.stop", {"turnId": "waiting", "sessionId": None}),
    ("queue.edit", {"turnId": "waiting", "content": "Hi"}),
    ("queue.remove", {"turnId": "waiting"}),
]


def body(theirs: Theirs, fields: dict[str, Any]) -> dict[str, Any]:
    """The command's fields, with the owner's ids in the place of their names."""
    named = {"sessionId": theirs.session} | fields
    for field in ("turnId", "messageId"):
        if field in named:
            named[field] = getattr(theirs, named[field])
    return named


@pytest.mark.parametrize("who", ["stranger", "root"])
async def test_it_knows_no_session_of_another_person(
    theirs: Theirs, stranger: User, who: str
) -> None:
    intruder = stranger if who == "stranger" else await sync_to_async(SuperuserFactory)()
    before = await everything()
    async with SocketClient(intruder) as client:
        for command, fields in REFUSED:
            error = await client.refused(command, **body(theirs, fields))
            unknown = Theirs(*[str(uuid4())] * 5)
            assert error == await client.refused(command, **body(unknown, fields)), command
            assert error["code"] == "not_found", command
        assert not client.events()
    assert await everything() == before


def test_it_refuses_every_command_that_names_something() -> None:
    named = {
        kind.__struct_config__.tag
        for kind in protocol.AnyCommand.__args__
        if {"session_id", "turn_id", "message_id"} & set(kind.__struct_fields__)
    }
    assert named - {"session.unsubscribe"} == {command for command, _ in REFUSED}


MINGLED: list[tuple[str, dict[str, Any]]] = [
    ("message.edit", {"messageId": "message", "content": "Hi", "clientMessageId": "m"}),
    ("turn.retry", {"turnId": "finished", "clientMessageId": "m"}),
    ("branch.select", {"messageId": "message"}),
    ("turn.stop", {"turnId": "running"}),
]


async def test_it_knows_nothing_of_another_person_in_a_session_of_ones_own(
    theirs: Theirs, stranger: User
) -> None:
    async with SocketClient(stranger) as client:
        sent = await client.say("mine")
        await client.finished(sent["turnId"])
        for command, fields in MINGLED:
            mine = body(theirs, fields) | {"sessionId": sent["sessionId"]}
            assert (await client.refused(command, **mine))["code"] == "not_found", command


async def test_it_lists_and_watches_nothing_of_another_person(
    theirs: Theirs, stranger: User
) -> None:
    async with SocketClient(stranger) as client:
        assert (await client.ok("session.list"))["sessions"] == []
        assert (await client.ok("session.list", query="secret"))["sessions"] == []
        assert await client.ok("session.unsubscribe", sessionId=theirs.session) == {}
        await client.send({"type": "ack", "acks": {theirs.session: 1}})
        await client.ok("ping")


async def test_it_lets_two_people_use_the_same_message_id(
    gateway: GatewayHost, model: FakeModelServer, owner: User, stranger: User
) -> None:
    async with SocketClient(owner) as ann, SocketClient(stranger) as bob:
        one = await ann.say("hello", cid="same")
        other = await bob.say("hello", cid="same")
        assert one["turnId"] != other["turnId"]
        assert (one["replayed"], other["replayed"]) == (False, False)
        await ann.finished(one["turnId"])
        await bob.finished(other["turnId"])
