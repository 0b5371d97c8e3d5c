"""What an operator does in the admin reaches clients and runs without waiting for a poll."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from tests.factories import SuperuserFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

BOARD = "/admin/board/"
NEVER_S = 3600.0


@pytest.fixture
def config(model: FakeModelServer) -> GatewayConfig:
    """No beat and no poll comes within a test."""
    return GatewayConfig(
        openai_base_url=model.url, openai_api_key="sk-test", default_model="openai:fake-1",
        max_retries=0, heartbeat_s=NEVER_S, poll_s=NEVER_S,
    )  # fmt: skip


async def act(path: str, **fields: str) -> None:
    """One button of the admin, pressed by a superuser."""

    def post() -> int:
        client = Client()
        client.force_login(SuperuserFactory())
        return client.post(path, fields).status_code

    assert await sync_to_async(post)() == 302


def customs(client: SocketClient, name: str) -> list[Any]:
    events = [frame["event"] for frame in client.events()]
    return [event["value"] for event in events if event.get("name") == f"hermes.{name}"]


async def test_it_stops_removes_and_tries_again_at_once(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["so ", "far"], gates={1: Gate()}), Script(status=500), Script())
    async with SocketClient(owner) as client:
        runs = await client.say("A long answer")
        await client.until(lambda: client.text(runs["turnId"]))
        waits = await client.say("Then this", runs["sessionId"])
        assert waits["status"] == "queued"
        await client.until(lambda: customs(client, "queue"))
        await act(BOARD, stop=waits["turnId"])
        await client.until(lambda: customs(client, "queue")[-1] == {"queue": []})
        await act(BOARD, stop=runs["turnId"])
        stopped = await client.finished(runs["turnId"])
        assert stopped["outcome"] == {"type": "cancelled"}
        fails = await client.say("This fails", runs["sessionId"])
        assert (await client.finished(fails["turnId"]))["type"] == "RUN_ERROR"
        known = {frame.get("turnId") for frame in client.events()}
        await act(BOARD, retry=fails["turnId"])
        again = await client.until(
            lambda: next(
                (one["turnId"] for one in client.events()
                 if one["event"]["type"] == "RUN_STARTED" and one["turnId"] not in known), None,
            )
        )  # fmt: skip
        assert (await client.finished(again))["type"] == "RUN_FINISHED"


async def test_it_tells_who_watches_a_session_that_it_was_deleted(
    gateway: GatewayHost, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("Hello")
        await client.finished(sent["turnId"])
        session_id = sent["sessionId"]
        await act(f"/admin/sessions_app/session/{session_id}/delete/", post="yes")
        await client.until(lambda: customs(client, "rewritten"))
        gone = {"type": "gone", "sessionId": session_id}
        await client.until(lambda: gone in client.frames)
