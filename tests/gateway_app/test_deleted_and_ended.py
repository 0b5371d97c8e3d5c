"""What becomes of turns whose session is deleted, or ends, while they run or wait."""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from gateway_app.turns.heartbeat import Heartbeat
from sessions_app import services as transcripts
from sessions_app.models import Message, Session
from tests.factories import QueuedTurnFactory, SessionFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.session_log import read_log
from tests.socket_client import Frame, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

R = TypeVar("R")


async def in_database(call: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    return await sync_to_async(call)(*args, **kwargs)


def rows_of(session_id: str) -> list[tuple[str, str]]:
    found = Message.objects.filter(session_id=session_id).exclude(kind="session_meta")
    return [(row.kind, row.parts[0]["text"]) for row in found.order_by("position")]


def states_of(session_id: str) -> list[tuple[str, str]]:
    turns = Turn.objects.filter(session_id=session_id).order_by("accepted_seq")
    return list(turns.values_list("state", "finish"))


async def beat(gateway: GatewayHost) -> None:
    await Heartbeat(gateway.runner, gateway.lanes, gateway.hub, gateway.config).beat()


async def running(client: SocketClient, model: FakeModelServer) -> tuple[Gate, Frame]:
    """A turn that has shown "one" and waits at a gate."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    sent = await client.say("hello")
    await client.until(lambda: client.text(sent["turnId"]))
    return gate, sent


async def test_it_ends_the_run_of_a_deleted_session_and_goes_on_when_it_is_restored(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await running(client, model)
        waiting = await client.say("next", sent["sessionId"])
        await client.ok("session.delete", sessionId=sent["sessionId"])
        assert await gateway.runner.wait_idle(10)
        gate.release()
        await beat(gateway)
        states = await in_database(states_of, sent["sessionId"])
        assert states == [("stopped", "stopped"), ("queued", "")]
        log = [f for f in await read_log(sent["sessionId"]) if f.get("turnId") == sent["turnId"]]
        kinds = [frame["event"]["type"] for frame in log]
        assert [kind for kind in kinds if kind in {"RUN_FINISHED", "RUN_ERROR"}] == ["RUN_FINISHED"]
        assert kinds.index("TEXT_MESSAGE_END") < kinds.index("RUN_FINISHED")
        await client.ok("session.restore", sessionId=sent["sessionId"])
        await client.ok("session.subscribe", sessionId=sent["sessionId"], after=0)
        await beat(gateway)
        assert (await client.finished(waiting["turnId"]))["type"] == "RUN_FINISHED"
    rows = await in_database(rows_of, sent["sessionId"])
    assert rows[:3] == [("user", "hello"), ("assistant", "one "), ("user", "next")]


async def test_it_ends_the_run_of_a_session_that_staff_deleted(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await running(client, model)
        await in_database(transcripts.delete_session, session_id=UUID(sent["sessionId"]))
        await beat(gateway)
        assert await gateway.runner.wait_idle(10)
        await beat(gateway)
        gate.release()
    assert await in_database(states_of, sent["sessionId"]) == [("stopped", "stopped")]


@pytest.fixture
def ended(owner: User) -> Session:
    """An ended session in which two messages wait."""
    session: Session = SessionFactory(owner=owner)
    for text in ("one", "two"):
        QueuedTurnFactory(session=session, content=[{"type": "text", "text": text}])
    transcripts.end_session(session_id=session.pk)
    return session


async def test_it_stops_what_waits_in_a_session_that_ended(
    ended: Session, gateway: GatewayHost, owner: User
) -> None:
    async with SocketClient(owner) as client:
        await client.ok("session.subscribe", sessionId=str(ended.pk))
        await beat(gateway)

        def queue() -> list[Frame]:
            return [f for f in client.events() if f["event"].get("name") == "hermes.queue"]

        await client.until(queue)
        assert queue()[-1]["event"]["value"] == {"queue": []}
        page = await client.ok("session.history", sessionId=str(ended.pk))
    told = "This conversation ended before this message was answered."
    texts = [(row["kind"], row["parts"][0]["text"]) for row in page["messages"]]
    assert texts == [("user", "one"), ("notice", told), ("user", "two"), ("notice", told)]
    assert await in_database(states_of, str(ended.pk)) == [("stopped", "ended")] * 2
    await beat(gateway)
    assert await in_database(rows_of, str(ended.pk)) == texts


async def test_it_leaves_what_waits_in_a_deleted_session_for_its_return(
    ended: Session, gateway: GatewayHost
) -> None:
    await in_database(transcripts.delete_session, session_id=ended.pk)
    await beat(gateway)
    assert await in_database(states_of, str(ended.pk)) == [("queued", "")] * 2
