"""What Prometheus is told, and who may ask."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, RequestFactory

from gateway_app import credentials
from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.metrics import REGISTRY
from gateway_app.metrics_view import comes_from_this_machine
from gateway_app.models import Turn
from gateway_app.scrape import count_open_turns
from gateway_app.services.operators import stop_any_turn
from sessions_app.models import Session
from tests.factories import QueuedTurnFactory, SessionFactory, StaffFactory, TurnFactory
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.heart import beat
from tests.socket_client import SocketClient
from tests.statements import every_statement, sqlite_plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """Turns that tests put into the queue stay there."""
    return replace(config, heartbeat_s=3600)


async def scraped() -> dict[str, float]:
    """Every sample of an operator's scrape, by name and labels."""
    user = await sync_to_async(StaffFactory)(permissions=["gateway_app.view_turn"])
    token = await sync_to_async(credentials.create_token)(user=user)
    headers = {"Authorization": f"Bearer {token}"}
    answer: Any = await AsyncClient().get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"].startswith("text/plain")
    lines = re.findall(r"^([a-z_]+(?:\{.*?\})?) (\S+)$", answer.content.decode(), re.MULTILINE)
    return {name: float(value) for name, value in lines}


async def test_it_counts_a_turn_with_everything_around_it(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["Hi"]), Script(status=500))
    before = await scraped()

    def rose(after: dict[str, float], name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    async with SocketClient(owner) as client:
        sent = await client.say("Hello")
        await client.finished(sent["turnId"])
        failed = await client.say("And now?", sent["sessionId"])
        await client.finished(failed["turnId"])
        assert await gateway.runner.wait_idle(60)
        after = await scraped()
        assert after["hermes_websockets"] == 1
    assert rose(after, 'hermes_turns_total{code="",state="completed"}') == 1
    assert rose(after, 'hermes_turns_total{code="model_unavailable",state="failed"}') == 1
    assert rose(after, 'hermes_provider_calls_total{outcome="answered",provider="openai"}') >= 1
    assert rose(after, 'hermes_guard_verdicts_total{reason="",verdict="new"}') == 1
    assert rose(after, 'hermes_guard_verdicts_total{reason="",verdict="reuse"}') == 1
    assert rose(after, "hermes_input_tokens_total") > 0
    assert rose(after, "hermes_first_token_seconds_count") == 1
    assert rose(after, "hermes_turn_seconds_count") == 2
    assert rose(after, "hermes_log_flush_seconds_count") >= 1
    assert rose(after, "hermes_log_flush_events_sum") >= 1
    assert after["hermes_agent_cache_agents"] == 1
    assert after["hermes_agent_cache_bytes"] > 0
    assert after["hermes_running_runs"] == 0
    gateway.cache.evict_idle()
    assert rose(await scraped(), "hermes_agent_cache_evictions_total") == 1


def counted() -> Counter[tuple[str, str]]:
    """Turns that this process counted so far, by state and error code."""
    [family] = [one for one in REGISTRY.collect() if one.name == "hermes_turns"]
    return Counter({
        (sample.labels["state"], sample.labels["code"]): int(sample.value)
        for sample in family.samples if sample.name == "hermes_turns_total"
    })  # fmt: skip


def ended() -> Counter[tuple[str, str]]:
    """Turns that have ended, as the database holds them."""
    turns = Turn.objects.filter(finished_at__isnull=False)
    return Counter(turns.values_list("state", "error_code"))


async def test_it_counts_every_turn_that_ends_once_whoever_ends_it(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate, before = Gate(), counted()
    look = Script(tokens=["I look "], tool_calls=[ToolCall("a1", "look")], gates={1: gate})
    model.script(look, Script(tokens=["done"]), Script(status=500), Script(gates={1: Gate()}))
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        session_id = first["sessionId"]
        await client.until(lambda: client.text(first["turnId"]))
        await client.say("left!", session_id, whenBusy="steer")
        stopped, removed, operated, failed, crashed = [
            (await client.say(text, session_id))["turnId"]
            for text in ("stop me", "remove me", "operate on me", "fail", "crash")
        ]
        await client.ok("turn.stop", turnId=stopped)
        await client.ok("queue.remove", turnId=removed)
        await sync_to_async(stop_any_turn)(turn_id=operated)
        gate.release()
        await client.finished(failed)
        await client.until(lambda: client.text(crashed))
        cleared = (await client.say("never mind", session_id))["turnId"]
        await gateway.runner.aclose()
        await client.ok("turn.stop", turnId=crashed, clearQueue=True)
        gateway.runner.draining = False
        await beat(gateway)
        await client.finished(crashed)
    stranded = await sync_to_async(QueuedTurnFactory)(session__owner=owner)
    sessions = Session.objects.filter(pk=stranded.session_id)
    await sync_to_async(sessions.update)(state="ended")
    await beat(gateway)
    found = await sync_to_async(ended)()
    assert counted() - before == found
    assert found.total() == len({first["turnId"], stopped, removed, operated, failed, crashed,
                                 cleared, "steer", stranded.pk})  # fmt: skip


async def test_it_counts_what_waits_by_index_however_much_has_ended(gateway: GatewayHost) -> None:
    session = await sync_to_async(SessionFactory)()
    await sync_to_async(QueuedTurnFactory.create_batch)(2, session=session)
    await sync_to_async(TurnFactory.create_batch)(20, session=session)
    samples = await scraped()
    assert samples['hermes_open_turns{state="queued"}'] == 2
    assert samples['hermes_open_turns{state="running"}'] == 0
    assert samples['hermes_database_queue{lane="write"}'] == 0


def test_it_asks_one_statement_of_an_index() -> None:
    with every_statement() as statements:
        count_open_turns()
    (statement,) = statements.found
    if connection.vendor == "sqlite":
        assert all("turn_open" in line for line in sqlite_plan(connection, statement)
                   if re.match("SCAN|SEARCH", line))  # fmt: skip


async def test_it_tells_an_operator_with_a_token_and_nobody_else(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    operator = await sync_to_async(StaffFactory)(permissions=["gateway_app.view_turn"])
    staff = await sync_to_async(StaffFactory)()
    client = AsyncClient()

    async def status(user: User | None, token: str = "") -> int:
        if user is not None:
            token = await sync_to_async(credentials.create_token)(user=user)
        headers = {"Authorization": f"Bearer {token}"}
        return int((await client.get("/metrics", headers=headers)).status_code)

    assert await status(operator) == 200
    assert [await status(one) for one in (owner, stranger, staff)] == [403, 403, 403]
    assert await status(None, "wrong") == 401
    assert await status(None, "") == 401
    await client.aforce_login(operator)
    answer = await client.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthenticated")
    assert (await client.post("/metrics")).status_code == 405


@pytest.mark.parametrize(
    ("address", "asked", "headers", "here"),
    [
        ("127.0.0.1", "127.0.0.1:8000", {}, True),
        ("127.0.0.1", "localhost", {}, True),
        ("::1", "[::1]:8000", {}, True),
        ("10.0.0.7", "127.0.0.1:8000", {}, False),
        ("10.0.0.7", "127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, False),
        ("127.0.0.1", "testserver", {}, False),
        ("127.0.0.1", "127.0.0.1", {"X-Forwarded-For": "10.0.0.7"}, False),
        ("127.0.0.1", "127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, False),
        ("127.0.0.1", "127.0.0.1", {"X-Forwarded-Proto": "https"}, False),
        ("127.0.0.1", "127.0.0.1", {"Forwarded": "for=10.0.0.7"}, False),
        ("127.0.0.1", "127.0.0.1", {"X-Real-IP": "10.0.0.7"}, False),
        ("", "127.0.0.1", {}, False),
    ],
)
def test_it_is_not_fooled_by_a_proxy(
    address: str, asked: str, headers: dict[str, str], here: bool
) -> None:
    request = RequestFactory(REMOTE_ADDR=address, HTTP_HOST=asked).get("/metrics", headers=headers)
    assert comes_from_this_machine(request) is here


def test_it_trusts_no_address_where_tls_ends_before_this_site(settings: Any) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    request = RequestFactory(REMOTE_ADDR="127.0.0.1", HTTP_HOST="127.0.0.1").get("/metrics")
    assert comes_from_this_machine(request) is False
