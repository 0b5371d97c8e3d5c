"""The founding regression: a turn's own rows must not look foreign."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from sessions_app.models import Message, Session
from tests.fake_model_server import FakeModelServer
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def kinds_of(session_id: str) -> list[str]:
    rows = Message.objects.filter(session_id=session_id).order_by("position")
    return list(rows.values_list("kind", flat=True))


@sync_to_async
def turn_row(turn_id: str) -> Turn:
    return Turn.objects.get(pk=turn_id)


@sync_to_async
def session_row(session_id: str) -> Session:
    return Session.objects.get(pk=session_id)


async def test_it_ends_the_first_turn_with_the_baseline_at_the_revision(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello world")
        finished = await client.finished(sent["turnId"])
        assert finished["type"] == "RUN_FINISHED", finished
        assert client.text(sent["turnId"]) == "Hello, world!"
        session = await session_row(sent["sessionId"])
        assert await kinds_of(sent["sessionId"]) == ["user", "assistant", "session_meta"]
        assert session.message_count == 3
        agent = gateway.cache.get(session.pk)
        assert agent is not None
        assert agent.baseline == (session.revision, session.incarnation)
        first = agent

        sent = await client.say("again", sent["sessionId"])
        finished = await client.finished(sent["turnId"])
        assert finished["metadata"]["hermes"]["cache"]["verdict"] == "reuse"
        assert gateway.cache.get(session.pk) is first
    one, two = (json.loads(request.body)["messages"] for request in model.requests)
    assert two[: len(one)] == one
    assert (await turn_row(sent["turnId"])).verdict == "reuse"
