"""A process that is about to end: it takes no turns, and another one takes up its own."""

import asyncio
from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from tests.fake_model_server import FakeModelServer
from tests.gateway_app.busy.held import held, rows_of, states_of
from tests.gateway_app.coherence.elsewhere import in_database
from tests.gateway_app.heart import beat
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_drains_and_leaves_the_rest_to_another_process(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    client = SocketClient(owner)
    await client.open()
    await client.ok("hello", protocol="hermes.v1")
    gate, sent = await held(client, model)
    queued = await client.say("next", sent["sessionId"])
    drain = asyncio.create_task(gateway.drain(grace_s=0))
    await client.until(lambda: any(f.get("type") == "draining" for f in client.frames))
    await drain
    assert client.closed == 4012
    await client.leave()
    assert await in_database(states_of, sent["sessionId"]) == ["running", "queued"]

    other = GatewayHost(replace(gateway.config))
    await other.start(checkpoint=False)
    await beat(other)
    await other.runner.wait_idle(60)
    gate.release()
    assert await in_database(states_of, sent["sessionId"]) == ["completed", "completed"]
    rows = await in_database(rows_of, sent["sessionId"])
    assert rows[:3] == [
        ("user", "active", "first"),
        ("assistant", "superseded", "one "),
        ("assistant", "active", "Hello, world!"),
    ]
    assert queued["status"] == "queued"
    await other.aclose()


async def test_an_answer_that_ends_in_the_grace_is_seen_to_its_end(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    client = SocketClient(owner)
    await client.open()
    await client.ok("hello", protocol="hermes.v1")
    gate, sent = await held(client, model)
    drain = asyncio.create_task(gateway.drain(grace_s=60))
    await client.until(lambda: any(f.get("type") == "draining" for f in client.frames))
    gate.release()
    await drain
    assert client.closed == 4012
    await client.leave()
    assert await in_database(states_of, sent["sessionId"]) == ["completed"]
    ends = [
        one for one in client.events(sent["sessionId"]) if one["event"]["type"] == "RUN_FINISHED"
    ]
    assert len(ends) == 1


async def test_it_refuses_sends_while_draining(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gateway.runner.draining = True
        error = await client.refused("message.send", content="x", clientMessageId="d")
        assert (error["code"], error["retryable"]) == ("draining", True)
