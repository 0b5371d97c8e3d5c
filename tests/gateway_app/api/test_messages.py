"""Messages and turns over HTTP: sent once, whichever door a repeat takes."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import gateway_config
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from sessions_app.models import Message
from sessions_app.services import end_session
from tests.factories import QueuedTurnFactory, SessionFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.http_client import HttpClient
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def new_session(client: HttpClient) -> str:
    made = await client.ok("POST", "/sessions", {"clientMessageId": str(uuid4())})
    session_id: str = made["session"]["id"]
    return session_id


async def test_it_answers_a_message(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["Good ", "day."]))
    client = HttpClient(owner)
    session_id = await new_session(client)
    body = {"clientMessageId": "m1", "content": "Hello"}
    sent = await client.ask("POST", f"/sessions/{session_id}/messages", body)
    assert sent.status_code == 202
    reply = sent.json()
    assert (reply["status"], reply["replayed"]) == ("running", False)
    assert await gateway.runner.wait_idle(60)
    history = await client.ok("GET", f"/sessions/{session_id}/messages")
    assert [row["parts"][0]["text"] for row in history["messages"]] == ["Hello", "Good day."]
    assert (history["hasMore"], history["before"]) == (False, None)
    turn = (await client.ok("GET", f"/turns/{reply['turnId']}"))["turn"]
    assert (turn["state"], turn["sessionId"]) == ("completed", session_id)
    assert turn["usage"]["outputTokens"] > 0 and turn["finishedAt"] > turn["createdAt"]
    page = await client.ok("GET", f"/sessions/{session_id}/turns")
    assert page == {"turns": [turn], "nextCursor": None}


async def test_it_takes_the_same_message_once_by_both_doors(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case B1: a hundred times from two sockets and over HTTP."""
    model.script(Script(tokens=["once"]))
    client = HttpClient(owner)
    session_id = await new_session(client)
    body = {"clientMessageId": "same", "content": "Hello"}
    async with SocketClient(owner) as one, SocketClient(owner) as two:

        async def send(number: int) -> Any:
            if number % 3:
                socket = (one, two)[number % 3 - 1]
                return await socket.ok("message.send", sessionId=session_id, **body)
            return await client.ok("POST", f"/sessions/{session_id}/messages", body)

        replies = await asyncio.gather(*(send(number) for number in range(100)))
    assert await gateway.runner.wait_idle(60)
    assert len({reply["turnId"] for reply in replies}) == 1
    assert sorted(reply["replayed"] for reply in replies) == [False] + [True] * 99
    late = await client.ok("POST", f"/sessions/{session_id}/messages", body)
    assert (late["replayed"], late["status"]) == (True, "completed")
    assert len(model.requests) == 1
    assert await Turn.objects.acount() == 1
    assert await Message.objects.filter(kind="user").acount() == 1


async def test_it_counts_all_of_a_conversation_whatever_became_of_its_agent(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case F90: loaded anew, then rebuilt; what was used is that of all three turns."""
    model.default = Script(tokens=["one ", "two"])
    client = HttpClient(owner)
    session_id = await new_session(client)
    for number in range(3):
        await client.ok(
            "POST", f"/sessions/{session_id}/messages", {"clientMessageId": f"{number}",
                                                         "content": "Hello"},
        )  # fmt: skip
        assert await gateway.runner.wait_idle(60)
        gateway.cache.evict_idle()
        if number == 1:
            await client.ok("PATCH", f"/sessions/{session_id}", {"model": "openai:fake-2"})
    turns = (await client.ok("GET", f"/sessions/{session_id}/turns"))["turns"]
    total = (await client.ok("GET", "/usage"))["total"]
    assert (total["turns"], total["outputTokens"]) == (3, 6)
    assert total["inputTokens"] == sum(turn["usage"]["inputTokens"] for turn in turns)
    assert len({turn["usage"]["inputTokens"] for turn in turns}) == 3


async def test_it_tells_another_body_from_a_repeat(gateway: GatewayHost, owner: User) -> None:
    client = HttpClient(owner)
    path = f"/sessions/{await new_session(client)}/messages"
    await client.ok("POST", path, {"clientMessageId": "m", "content": "Hello"})
    error = await client.refused("POST", path, {"clientMessageId": "m", "content": "Other"})
    assert (error["status"], error["code"]) == (409, "idempotency_mismatch")
    assert await gateway.runner.wait_idle(60)


async def test_it_queues_refuses_and_stops_while_an_answer_is_written(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(tokens=["so ", "far"], gates={1: gate}))
    client = HttpClient(owner)
    path = f"/sessions/{await new_session(client)}/messages"
    running = await client.ok("POST", path, {"clientMessageId": "1", "content": "One"})
    waiting = await client.ok("POST", path, {"clientMessageId": "2", "content": "Two"})
    assert (waiting["status"], waiting["place"]) == ("queued", 1)
    error = await client.refused(
        "POST", path, {"clientMessageId": "3", "content": "Three", "whenBusy": "reject"}
    )
    assert (error["status"], error["code"]) == (409, "busy")
    stop = await client.ask("POST", f"/turns/{running['turnId']}/stop", {"clearQueue": True})
    assert stop.status_code == 202
    assert await gateway.runner.wait_idle(60)
    gate.release()
    states = [
        (await client.ok("GET", f"/turns/{one['turnId']}"))["turn"]["state"]
        for one in (running, waiting)
    ]
    assert states == ["stopped", "stopped"]
    again = await client.ask("POST", f"/turns/{running['turnId']}/stop")
    assert again.status_code == 202


async def test_it_says_that_a_queue_is_full(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    session = await sync_to_async(SessionFactory)(owner=owner)
    limit = gateway_config().max_queued
    for number in range(limit):
        await sync_to_async(QueuedTurnFactory)(session=session, accepted_seq=number)
    body = {"clientMessageId": "one more", "content": "Hello"}
    error = await HttpClient(owner).refused("POST", f"/sessions/{session.pk}/messages", body)
    assert (error["status"], error["code"]) == (429, "queue_full")


async def test_it_takes_no_message_while_it_drains(gateway: GatewayHost, owner: User) -> None:
    client = HttpClient(owner)
    session_id = await new_session(client)
    await gateway.drain(0)
    body = {"clientMessageId": "late", "content": "Hello"}
    answer = await client.ask("POST", f"/sessions/{session_id}/messages", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "draining")
    assert int(answer["Retry-After"]) > 0
    assert (await client.ok("GET", f"/sessions/{session_id}/messages"))["messages"] == []


async def test_it_names_the_successor_of_an_ended_session(
    gateway: GatewayHost, owner: User
) -> None:
    old = await sync_to_async(SessionFactory)(owner=owner)
    await sync_to_async(end_session)(session_id=old.pk)
    new = await sync_to_async(SessionFactory)(owner=owner, key=old.key)
    body = {"clientMessageId": "m", "content": "Hello"}
    error = await HttpClient(owner).refused("POST", f"/sessions/{old.pk}/messages", body)
    assert (error["status"], error["code"]) == (409, "session_ended")
    assert error["successorId"] == str(new.pk)


async def test_it_says_why_a_turn_failed_in_the_readers_language(
    gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    client, german = HttpClient(owner), {"Accept-Language": "de-AT,de;q=0.9"}
    session_id = await new_session(client)
    model.script(Script(status=401))
    body = {"clientMessageId": "m", "content": "Hello"}
    sent = await client.ok("POST", f"/sessions/{session_id}/messages", body)
    assert await gateway.runner.wait_idle(60)
    for language, words in (({}, "the key"), (german, "Schlüssel")):
        one = await client.ok("GET", f"/turns/{sent['turnId']}", headers=language)
        turns = await client.ok("GET", f"/sessions/{session_id}/turns", headers=language)
        page = await client.ok("GET", f"/sessions/{session_id}/messages", headers=language)
        told = [one["turn"]["error"], turns["turns"][0]["error"], page["turns"][0]["error"]]
        assert {error["code"] for error in told} == {"model_auth"}
        [message] = {error["message"] for error in told}
        assert words in message
        assert message == page["messages"][-1]["parts"][0]["text"]


async def test_it_pages_turns_and_history(gateway: GatewayHost, owner: User) -> None:
    client = HttpClient(owner)
    session_id = await new_session(client)
    for number in range(4):
        body = {"clientMessageId": str(number), "content": f"Message {number}"}
        await client.ok("POST", f"/sessions/{session_id}/messages", body)
        assert await gateway.runner.wait_idle(60)
    seen: list[Any] = []
    cursor = ""
    for _ in range(2):
        page = await client.ok("GET", f"/sessions/{session_id}/turns?limit=2{cursor}")
        seen += [one["turnId"] for one in page["turns"]]
        cursor = f"&cursor={page['nextCursor']}"
    assert page["nextCursor"] is None and len(set(seen)) == 4
    page = await client.ok("GET", f"/sessions/{session_id}/messages?limit=3")
    older = await client.ok(
        "GET", f"/sessions/{session_id}/messages?limit=100&before={page['before']}"
    )
    assert len(page["messages"]) == 3 and len(older["messages"]) == 5
    assert older["messages"][0]["parts"][0]["text"] == "Message 0"
