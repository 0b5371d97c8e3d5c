"""What becomes of turns whose session is deleted, or ends, while they run or wait."""

from uuid import UUID

import pytest
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from sessions_app import services as transcripts
from sessions_app.models import Session
from tests.factories import QueuedTurnFactory, SessionFactory
from tests.fake_model_server import FakeModelServer
from tests.gateway_app.busy.held import held, rows_of, said
from tests.gateway_app.coherence.elsewhere import in_database, session_of
from tests.gateway_app.heart import beat
from tests.session_log import read_log
from tests.socket_client import Frame, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


def states_of(session_id: str) -> list[tuple[str, str]]:
    turns = Turn.objects.filter(session_id=session_id).order_by("accepted_seq")
    return list(turns.values_list("state", "finish"))


async def test_it_ends_the_run_of_a_deleted_session_and_goes_on_when_it_is_restored(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        waiting = await client.say("next", sent["sessionId"])
        await client.ok("session.delete", sessionId=sent["sessionId"])
        assert await gateway.runner.wait_idle(60)
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
    rows = await in_database(said, sent["sessionId"])
    assert rows[:3] == [("user", "first"), ("assistant", "one "), ("user", "next")]


async def test_it_ends_the_run_of_a_session_that_staff_deleted(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        await in_database(transcripts.delete_session, session_id=UUID(sent["sessionId"]))
        await beat(gateway)
        assert await gateway.runner.wait_idle(60)
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
    assert await in_database(said, str(ended.pk)) == texts


async def test_it_leaves_what_waits_in_a_deleted_session_for_its_return(
    ended: Session, gateway: GatewayHost
) -> None:
    await in_database(transcripts.delete_session, session_id=ended.pk)
    await beat(gateway)
    assert await in_database(states_of, str(ended.pk)) == [("queued", "")] * 2


async def test_it_fences_the_run_of_a_deleted_session(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await held(client, model)
        await client.ok("session.delete", sessionId=sent["sessionId"])
        await model.requests[0].ended.wait()
        gate.release()
        error = await client.refused(
            "message.send", sessionId=sent["sessionId"], content="x", clientMessageId="late"
        )
        assert error["code"] == "not_found"
        assert (await client.ok("session.list"))["sessions"] == []
        restored = await client.ok("session.restore", sessionId=sent["sessionId"])
        assert restored["session"]["id"] == sent["sessionId"]
    rows = await in_database(rows_of, sent["sessionId"])
    assert rows[0][0] == "user"
    assert not [text for _, _, text in rows if "two" in text]


async def test_it_names_the_successor_of_an_ended_session(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("one")
        await client.finished(sent["turnId"])
        session = await in_database(session_of, UUID(sent["sessionId"]))
        await in_database(transcripts.end_session, session_id=session.pk)
        successor = await in_database(
            transcripts.create_session, key=session.key, owner_id=owner.pk, agent="main"
        )
        error = await client.refused(
            "message.send", sessionId=sent["sessionId"], content="x", clientMessageId="late"
        )
        assert (error["code"], error["successorId"]) == ("session_ended", str(successor.pk))


async def test_it_brings_a_session_back_as_an_ended_one_where_another_took_its_key(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("one")
        await client.finished(sent["turnId"])
        await client.ok("session.delete", sessionId=sent["sessionId"])
        session = await in_database(session_of, UUID(sent["sessionId"]))
        successor = await in_database(
            transcripts.create_session, key=session.key, owner_id=owner.pk, agent="main"
        )
        restored = await client.ok("session.restore", sessionId=sent["sessionId"])
        assert restored["session"]["state"] == "ended"
        error = await client.refused(
            "message.send", sessionId=sent["sessionId"], content="x", clientMessageId="late"
        )
        assert (error["code"], error["successorId"]) == ("session_ended", str(successor.pk))
        page = await client.ok("session.history", sessionId=sent["sessionId"])
        assert [row["kind"] for row in page["messages"]] == ["user", "assistant"]


async def test_it_lets_another_tab_find_out_that_the_session_was_deleted(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client, SocketClient(owner) as other:
        sent = await client.say("first")
        await client.finished(sent["turnId"])
        session_id = sent["sessionId"]
        await other.ok("session.subscribe", sessionId=session_id)
        await client.ok("session.delete", sessionId=session_id)
        await other.until(
            lambda: (
                other.events(session_id)
                and other.events(session_id)[-1]["event"].get("name") == "hermes.rewritten"
            )
        )
        assert (await other.refused("session.subscribe", sessionId=session_id))["code"] == (
            "not_found"
        )
