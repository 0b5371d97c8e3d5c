"""A message that was sent is one turn, however often and from however many sockets it is sent."""

import asyncio
import gc
from contextlib import AsyncExitStack
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import transaction

from gateway_app.host import GatewayHost
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from sessions_app.models import Message, Session
from tests.factories import AgentFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.socket_client import Frame, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def counts() -> tuple[int, int, int]:
    """(sessions, turns, rows that people wrote)"""
    written = Message.objects.filter(kind="user")
    return Session.objects.count(), Turn.objects.count(), written.count()


async def send_often(
    stack: AsyncExitStack, owner: User, body: Frame, *, sockets: int, each: int
) -> list[Frame]:
    """The results of the same send, all at once."""
    clients = [await stack.enter_async_context(SocketClient(owner)) for _ in range(sockets)]
    await asyncio.gather(
        *(
            client.send({"type": "message.send", "id": f"send {number}", **body})
            for client in clients
            for number in range(each)
        )
    )
    results = []
    for client in clients:
        for number in range(each):
            name = f"send {number}"
            await client.until(lambda name=name, client=client: name in client.replies)
            assert client.replies[name]["ok"], client.replies[name]
            results.append(client.replies[name]["result"])
    return results


@pytest.mark.parametrize("where", ["a session that is there", "a new session"])
async def test_it_makes_one_turn_of_a_hundred_identical_sends(
    gateway: GatewayHost, model: FakeModelServer, owner: User, where: str
) -> None:
    body = {"clientMessageId": "once", "content": "hello"}
    async with AsyncExitStack() as stack:
        witness = await stack.enter_async_context(SocketClient(owner))
        if where == "a session that is there":
            made = await witness.ok("session.create", clientMessageId="new")
            body["sessionId"] = made["session"]["id"]
        results = await send_often(stack, owner, body, sockets=5, each=20)
        assert len(results) == 100
        assert len({(result["sessionId"], result["turnId"]) for result in results}) == 1
        assert [result["replayed"] for result in results].count(False) == 1
        await witness.ok("session.subscribe", sessionId=results[0]["sessionId"], after=0)
        await witness.finished(results[0]["turnId"])
    assert await counts() == (1, 1, 1)
    assert len(model.requests) == 1


async def test_it_makes_one_session_of_a_hundred_identical_creates(
    gateway: GatewayHost, owner: User
) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(SocketClient(owner)) for _ in range(5)]
        made = await asyncio.gather(
            *(
                client.ok("session.create", clientMessageId="once", title="A title")
                for client in clients
                for _ in range(20)
            )
        )
    assert len({result["session"]["id"] for result in made}) == 1
    assert sorted(result["replayed"] for result in made) == [False] + [True] * 99
    assert await counts() == (1, 0, 0)


async def test_it_refuses_another_session_under_the_same_id(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    await sync_to_async(AgentFactory)(slug="other")
    async with SocketClient(owner) as client, SocketClient(stranger) as other:
        made = await client.ok("session.create", clientMessageId="once", title="A title")
        await client.ok("session.update", sessionId=made["session"]["id"], title="Changed since")
        for body in ({}, {"title": "Another"}, {"title": "A title", "agent": "other"}):
            error = await client.refused("session.create", clientMessageId="once", **body)
            assert error["code"] == "idempotency_mismatch", body
        again = await client.ok("session.create", clientMessageId="once", title="A title")
        assert again["session"]["id"] == made["session"]["id"]
        assert again["session"]["title"] == "Changed since"
        theirs = await other.ok("session.create", clientMessageId="once", title="Another")
        assert theirs["session"]["id"] != made["session"]["id"]


async def test_it_tells_a_repeat_what_became_of_the_turn(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(status=500))
    async with SocketClient(owner) as client:
        first = await client.say("hello", cid="one")
        await client.finished(first["turnId"])
        again = await client.say("hello", first["sessionId"], cid="one")
        assert again == {**first, "status": "failed", "replayed": True}
        retry = {"sessionId": first["sessionId"], "turnId": first["turnId"]}
        tried = await client.ok("turn.retry", clientMessageId="r", **retry)
        await client.finished(tried["turnId"])
        repeated = await client.ok("turn.retry", clientMessageId="r", **retry)
        assert repeated == {**tried, "status": "completed", "replayed": True}


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("message.send", {"content": "hello!"}),
        ("message.send", {"content": "hello", "sessionId": None}),
        ("turn.retry", {}),
        ("message.edit", {"content": "hello", "messageId": "01920000-0000-7000-8000-000000000000"}),
    ],
)
async def test_it_refuses_another_body_under_the_same_id(
    gateway: GatewayHost, model: FakeModelServer, owner: User, command: str, fields: Frame
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("hello", cid="one")
        await client.finished(first["turnId"])
        ids = {"sessionId": first["sessionId"], "clientMessageId": "one"}
        if command == "turn.retry":
            ids["turnId"] = first["turnId"]
        error = await client.refused(command, **{**ids, **fields})
        assert error["code"] == "idempotency_mismatch"
    assert (await counts())[1] == 1


async def test_it_takes_another_agent_for_another_body(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    await sync_to_async(AgentFactory)(slug="other")
    async with SocketClient(owner) as client:
        body = {"clientMessageId": "once", "content": "hello"}
        await client.ok("message.send", agent="other", **body)
        assert (await client.refused("message.send", **body))["code"] == "idempotency_mismatch"
        assert (await client.ok("message.send", agent="other", **body))["replayed"]


async def test_it_takes_content_in_parts_for_the_same_as_text(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        first = await client.say("hello", cid="one")
        await client.finished(first["turnId"])
        again = await client.ok(
            "message.send",
            sessionId=first["sessionId"],
            clientMessageId="one",
            content=[{"type": "text", "text": "hello"}],
        )
        assert again["replayed"]


def hold_session(session_id: str, held: Gate, let_go: Gate) -> None:
    """Another writer has the session until `let_go`."""
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True).get(pk=UUID(session_id))
        held.release()
        let_go.wait_sync()


async def test_it_runs_the_turn_of_a_client_that_left_amid_its_send(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    held, let_go = Gate(), Gate()
    async with SocketClient(owner) as client:
        made = await client.ok("session.create", clientMessageId="new")
        body = {"sessionId": made["session"]["id"], "clientMessageId": "one", "content": "hello"}
        holding = gateway.lanes.write(hold_session, body["sessionId"], held, let_go)
        await held.wait()
        await client.send({"type": "message.send", "id": "send", **body})
        await client.ok("ping")  # answered after the send was taken up
        assert "send" not in client.replies
    let_go.release()
    await holding
    async with SocketClient(owner) as again:
        await again.ok("session.subscribe", sessionId=body["sessionId"], after=0)
        result = await again.ok("message.send", **body)
        finished = await again.finished(result["turnId"])
    assert result["replayed"]
    assert finished["runId"] == f"{result['turnId']}.1"
    assert await counts() == (1, 1, 1)


async def test_it_takes_no_refusal_for_a_fault_when_its_client_left(
    gateway: GatewayHost, owner: User, caplog: pytest.LogCaptureFixture
) -> None:
    missing = UUID(int=1)
    inbound = Inbound(
        author_id=owner.pk, author_name="ann", client_message_id="e", body_hash="", content=[],
        when_busy="reject", edit_of=missing,
    )  # fmt: skip
    asked = asyncio.ensure_future(gateway.runner.accept(inbound, missing))
    await asyncio.sleep(0)
    [accepting] = gateway.runner._tasks
    asked.cancel()
    await asyncio.wait([asked, accepting])
    del accepting, asked
    await asyncio.sleep(0)
    gc.collect()
    assert "never retrieved" not in caplog.text
