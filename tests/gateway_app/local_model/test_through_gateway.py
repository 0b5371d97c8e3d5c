"""The prompt cache end to end: real model, real turns, warm and cold agents, foreign rows."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, connections

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost, set_host
from gateway_app.models import Turn
from tests.socket_client import SocketClient

pytestmark = [pytest.mark.local_model, pytest.mark.django_db(transaction=True)]

GOAL = 0.95


@dataclass
class Said:
    """One turn, as its row tells of it."""

    session_id: str
    verdict: str
    prompt: int
    cached: int
    output: int

    def share_of(self, before: "Said") -> float:
        """How much of the turn before, prompt and answer, came from the cache."""
        return self.cached / (before.prompt + before.output)


async def say(client: SocketClient, text: str, session_id: str | None = None) -> Said:
    sent = await client.say(text, session_id)
    finished = await client.finished(sent["turnId"])
    assert finished["type"] == "RUN_FINISHED", finished
    turn = await sync_to_async(Turn.objects.get)(pk=sent["turnId"])
    assert turn.input_tokens is not None
    assert turn.cached_tokens is not None
    assert turn.output_tokens is not None
    return Said(
        sent["sessionId"], turn.verdict, turn.input_tokens, turn.cached_tokens, turn.output_tokens
    )


def insert_from_outside(session_id: UUID) -> None:
    """A row by a program that knows nothing of Hermes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sessions_app_message (session_id, kind, parts) VALUES (%s, %s, %s)",
            [
                session_id.hex if connection.vendor == "sqlite" else session_id,
                "operator",
                '[{"type":"text","text":"Be brief."}]',
            ],
        )


async def started(model_url: str) -> GatewayHost:
    host = GatewayHost(GatewayConfig(local_url=model_url))
    set_host(host)
    await host.start(checkpoint=False)
    return host


@pytest.fixture
async def local_gateway(model_url: str, transactional_db: None) -> AsyncIterator[GatewayHost]:
    host = await started(model_url)
    yield host
    await host.aclose()
    set_host(None)
    await sync_to_async(connections.close_all)()


async def test_it_caches_the_last_turn_warm_evicted_and_caught_up(
    local_gateway: GatewayHost, owner: User
) -> None:
    async with SocketClient(owner) as client:
        first = await say(client, "Name three colours.")
        second = await say(client, "And three animals?", first.session_id)
        assert (second.verdict, second.share_of(first) >= GOAL) == ("reuse", True)

        assert local_gateway.cache.evict(UUID(first.session_id))
        third = await say(client, "Thanks.", first.session_id)
        assert (third.verdict, third.share_of(second) >= GOAL) == ("reload", True)

        await sync_to_async(insert_from_outside)(UUID(first.session_id))
        fourth = await say(client, "Go on.", first.session_id)
        assert (fourth.verdict, fourth.share_of(third) >= GOAL) == ("catch_up", True)


async def test_it_caches_the_last_turn_after_a_restart_of_the_gateway(
    model_url: str, owner: User
) -> None:
    host = await started(model_url)
    async with SocketClient(owner) as client:
        first = await say(client, "Name three rivers.")
    await host.aclose()
    host = await started(model_url)
    async with SocketClient(owner) as client:
        await client.ok("session.subscribe", sessionId=first.session_id)
        second = await say(client, "And three lakes?", first.session_id)
    await host.aclose()
    set_host(None)
    await sync_to_async(connections.close_all)()
    assert (second.verdict, second.share_of(first) >= GOAL) == ("reload", True)


async def test_it_caches_both_of_two_conversations_that_alternate(
    local_gateway: GatewayHost, owner: User
) -> None:
    async with SocketClient(owner) as client:
        one, other = await say(client, "Tell me of bread."), await say(client, "Tell me of milk.")
        for _ in range(2):
            before, one = one, await say(client, "And then?", one.session_id)
            assert one.share_of(before) >= GOAL
            before, other = other, await say(client, "Why?", other.session_id)
            assert other.share_of(before) >= GOAL
