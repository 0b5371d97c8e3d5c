"""A process tells that it lives, and obeys an order to evict that stands in its row."""

from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.housekeeping import JOBS
from gateway_app.models import Presence, Turn
from gateway_app.selectors.board import read_baselines, read_caches, read_present
from gateway_app.services.presence import (
    PresenceReport,
    ask_eviction,
    end_presence,
    renew_presence,
)
from gateway_app.turns.presence import PresenceBeat
from sessions_app.models import Session
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.socket_client import SocketClient
from tests.statements import every_statement

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """The process tells when a test says so."""
    quiet = {"heartbeat_s": 3600, "poll_s": 3600, "housekeeping_s": 3600}
    return replace(config, presence_s=3600, **quiet)


def beat_of(gateway: GatewayHost) -> PresenceBeat:
    return PresenceBeat(gateway.lanes, [gateway.cache], gateway.config, gateway.lease_owner)


@sync_to_async
def present() -> Presence:
    return Presence.objects.get()


async def test_it_is_present_from_its_start_to_its_end(config: GatewayConfig, model) -> None:
    host = GatewayHost(config)
    await host.start(checkpoint=False)
    row = await present()
    assert (row.owner, row.cached_agents, row.cached_agents_limit) == (host.lease_owner, 0, 128)
    await host.aclose()
    assert not await sync_to_async(Presence.objects.exists)()


async def test_it_tells_the_baselines_of_its_warm_agents(gateway, model, owner: User) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
    await beat_of(gateway).tell()
    session = await sync_to_async(Session.objects.get)()
    found = await sync_to_async(read_baselines)(session.pk)
    assert found == {gateway.lease_owner: session.revision}
    row = await present()
    assert row.cached_agents == 1
    assert row.cached_bytes > 0


async def test_it_takes_one_statement_a_beat(gateway) -> None:
    with every_statement() as statements:
        await beat_of(gateway).tell()
    assert len(statements.found) == 1


async def test_it_drops_idle_agents_when_told_and_says_how_many(
    gateway, model, owner: User
) -> None:
    beat = beat_of(gateway)
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        await client.finished(first["turnId"])
        await gateway.runner.wait_idle(60)
        assert await sync_to_async(ask_eviction)(owner=gateway.lease_owner)
        await beat.tell()
        row = await present()
        assert (row.cached_agents, row.evicted, row.evict_done, row.evict_asked) == (0, 1, 1, 1)
        second = await client.say("again", first["sessionId"])
        await client.finished(second["turnId"])
    turn = await sync_to_async(Turn.objects.get)(pk=second["turnId"])
    assert turn.verdict == "reload"
    await beat.tell()
    assert (await present()).cached_agents == 1  # an order is obeyed once


async def test_it_keeps_the_agent_of_a_run(gateway, model: FakeModelServer, owner: User) -> None:
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        await sync_to_async(ask_eviction)(owner=gateway.lease_owner)
        await beat_of(gateway).tell()
        assert (await present()).cached_agents == 1
        gate.release()
        await client.finished(sent["turnId"])


def test_it_takes_no_order_for_a_process_that_is_gone() -> None:
    assert not ask_eviction(owner="gone:1:x")


def test_it_does_not_count_the_dead_as_living() -> None:
    for owner in ("web:1:a", "web:2:b"):
        renew_presence(PresenceReport(owner, 1, 128, 10))
    Presence.objects.filter(owner="web:1:a").update(seen_at=timezone.now() - timedelta(minutes=5))
    assert [row.owner for row in read_present()] == ["web:2:b"]
    assert [one.presence.owner for one in read_caches().processes] == ["web:2:b"]
    job = JOBS["presences"]
    job.act(job.find())
    assert [row.owner for row in Presence.objects.all()] == ["web:2:b"]
    end_presence("web:2:b")
    assert not Presence.objects.exists()
