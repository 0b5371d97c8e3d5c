"""A queue of long messages: what is shown of it is bounded, what runs is whole."""

import json
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from gateway_app.shapes import QUEUED_CHARACTERS
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.socket_client import Frame, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "x" * 1_000_000


@sync_to_async
def content_of(turn_id: str) -> str:
    return "".join(part["text"] for part in Turn.objects.get(pk=UUID(turn_id)).content)


def queues(client: SocketClient) -> list[Frame]:
    return [frame for frame in client.events() if frame["event"].get("name") == "hermes.queue"]


async def test_it_shows_the_beginning_of_long_messages_that_wait(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(headers_gate=gate))
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        session_id = first["sessionId"]
        sent = [await client.say(LONG, session_id) for _ in range(3)]
        await client.until(lambda: len(queues(client)) == 3)
        last = queues(client)[-1]["event"]["value"]["queue"]
        assert [item["turnId"] for item in last] == [one["turnId"] for one in sent]
        for item in last:
            assert item["shortened"]
            assert item["content"] == [{"type": "text", "text": "x" * QUEUED_CHARACTERS}]
        assert len(json.dumps(queues(client)[-1])) < 3 * QUEUED_CHARACTERS + 2000
        edited = await client.ok("queue.edit", turnId=sent[0]["turnId"], content="short")
        assert [item.get("shortened", False) for item in edited["queue"]] == [False, True, True]
        assert await content_of(sent[1]["turnId"]) == LONG
        gate.release()
        await client.finished(sent[2]["turnId"])
    assert json.loads(model.requests[2].body)["messages"][-1]["content"] == LONG


async def test_it_bounds_a_message_of_many_parts_as_a_whole(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(headers_gate=gate))
    parts = [{"type": "text", "text": "y" * 10_000}] * 64
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        sent = await client.ok(
            "message.send", sessionId=first["sessionId"], clientMessageId="parts", content=parts
        )
        await client.until(lambda: queues(client))
        [item] = queues(client)[-1]["event"]["value"]["queue"]
        assert sum(len(part["text"]) for part in item["content"]) == QUEUED_CHARACTERS
        assert len(await content_of(sent["turnId"])) == 640_000
        gate.release()
        await client.finished(sent["turnId"])
