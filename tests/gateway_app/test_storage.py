"""A database that takes nothing for a while, or will not take one thing at all."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection

from gateway_app.config import GatewayConfig
from gateway_app.event_store import read_events
from gateway_app.host import GatewayHost, set_host
from gateway_app.models import Event, Turn
from gateway_app.services.runs import RunWrite, write_run
from gateway_app.services.starting import RunLease
from sessions_app.errors import RunFenced
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.log_ear import listening
from tests.refusing import INVALID, accept, accepting_again, refuse
from tests.socket_client import Frame, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

LOG, RUNNER = "gateway_app.event_log", "gateway_app.turns.runner"
NOT_LOGGED = "The event log could not be written"
WAITS = "A run's end waits"
ANSWER = "kind = 'assistant'"


@pytest.fixture
def tunables() -> dict[str, float]:
    """What a test turns; it parametrizes them."""
    return {}


@pytest.fixture
def config(config: GatewayConfig, tunables: dict[str, Any]) -> GatewayConfig:
    return replace(config, storage_retry_s=0.05, **tunables)


@pytest_asyncio.fixture
async def full(gateway: GatewayHost) -> AsyncIterator[None]:
    """After the test every row gets in again, before the gateway ends."""
    yield
    await sync_to_async(_accept_all)()


def _accept_all() -> None:
    with accepting_again(Event, Message):
        pass


@sync_to_async
def turn_of(turn_id: str) -> Turn:
    return Turn.objects.get(pk=turn_id)


@sync_to_async
def rows_of(session_id: str) -> list[tuple[str, str]]:
    found = Message.objects.filter(session_id=session_id).exclude(kind="session_meta")
    return [(row.kind, row.parts[0]["text"]) for row in found.order_by("position")]


def when_session(session_id: str) -> str:
    value = UUID(session_id)
    return f"NEW.session_id = '{value.hex if connection.vendor == 'sqlite' else value}'"


async def begun(
    client: SocketClient, model: FakeModelServer, last: Gate | None = None
) -> tuple[Gate, Frame]:
    """A turn that has shown "one" and waits at a gate; `last` is one before its last word."""
    gate = Gate()
    gates = {1: gate} if last is None else {1: gate, 2: last}
    model.script(Script(tokens=["one ", "two ", "three"], gates=gates))
    sent = await client.say("hello")
    await client.until(lambda: client.text(sent["turnId"]))
    return gate, sent


@sync_to_async
def logged_kinds(session_id: str) -> list[str]:
    return [str(one.event) for one in read_events(UUID(session_id), from_seq=1, limit_rows=1000)]


async def test_it_keeps_what_it_could_not_log_and_shows_it_once(
    gateway: GatewayHost, model: FakeModelServer, owner: User, full: None
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await begun(client, model, last := Gate())
        with listening(LOG, NOT_LOGGED) as ear:
            await sync_to_async(refuse)(Event)
            gate.release()
            await ear.hears(2)
        last.release()
        assert client.text(sent["turnId"]) == "one "
        await sync_to_async(accept)(Event)
        assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
        assert client.text(sent["turnId"]) == "one two three"
    frames = client.events(sent["sessionId"])
    assert [frame["seq"] for frame in frames] == sorted({frame["seq"] for frame in frames})
    assert len(await logged_kinds(sent["sessionId"])) == frames[-1]["seq"]


@pytest.mark.parametrize("tunables", [{"storage_patience_s": 0.0}])
async def test_it_ends_a_turn_that_could_not_be_logged_for_too_long(
    gateway: GatewayHost, model: FakeModelServer, owner: User, full: None
) -> None:
    never = Gate()
    async with SocketClient(owner) as client:
        gate, sent = await begun(client, model, never)
        with listening(RUNNER, WAITS) as ear:
            await sync_to_async(refuse)(Event)
            gate.release()
            await ear.hears()
        await sync_to_async(accept)(Event)
        end = await client.finished(sent["turnId"])
        never.release()
        assert (end["type"], end["code"]) == ("RUN_ERROR", "storage")
        assert "Your message is kept" in end["message"]
        assert client.text(sent["turnId"]) == "one two "
    rows = await rows_of(sent["sessionId"])
    assert rows == [("user", "hello"), ("assistant", "one two "), ("notice", end["message"])]
    assert gateway.storage.storing
    assert (await turn_of(sent["turnId"])).state == "failed"


async def test_it_waits_with_a_runs_end_until_the_database_takes_it(
    gateway: GatewayHost, model: FakeModelServer, owner: User, full: None
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await begun(client, model)
        waiting = await client.say("next", sent["sessionId"])
        with listening(RUNNER, WAITS) as ear:
            await sync_to_async(refuse)(Message, when=f"NEW.{ANSWER}")
            gate.release()
            await ear.hears()
        assert (await turn_of(sent["turnId"])).state == "running"
        await client.until(lambda: {"type": "storage", "storing": False} in client.frames)
        async with SocketClient(owner) as late:
            assert not (await late.ok("hello", protocol="hermes.v1"))["server"]["storing"]
        await sync_to_async(accept)(Message)
        assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
        assert (await client.finished(waiting["turnId"]))["type"] == "RUN_FINISHED"
        assert client.text(sent["turnId"]) == "one two three"
        await client.until(lambda: {"type": "storage", "storing": True} in client.frames)
    rows = await rows_of(sent["sessionId"])
    assert rows[:3] == [("user", "hello"), ("assistant", "one two three"), ("user", "next")]
    assert len(model.requests) == 2


async def test_it_says_that_an_answer_could_not_be_stored_and_goes_on(
    gateway: GatewayHost, model: FakeModelServer, owner: User, full: None
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await begun(client, model)
        waiting = await client.say("next", sent["sessionId"])
        await sync_to_async(refuse)(Message, why=INVALID, when=f"NEW.{ANSWER}")
        gate.release()
        end = await client.finished(sent["turnId"])
        assert (end["type"], end["code"]) == ("RUN_ERROR", "storage")
        assert "could not be stored" in end["message"]
        assert (await client.finished(waiting["turnId"]))["code"] == "storage"
        await sync_to_async(accept)(Message)
        again = await client.say("again", sent["sessionId"])
        assert (await client.finished(again["turnId"]))["type"] == "RUN_FINISHED"
    assert (await turn_of(sent["turnId"])).error_code == "storage"
    kinds = [kind for kind, _ in await rows_of(sent["sessionId"])]
    assert kinds == ["user", "notice", "user", "notice", "user", "assistant"]


async def test_it_lets_no_run_suffer_for_what_is_refused_of_another(
    gateway: GatewayHost, model: FakeModelServer, owner: User, full: None
) -> None:
    async with SocketClient(owner) as client:
        gate, refused = await begun(client, model, last := Gate())
        other_gate, sent = await begun(client, model)
        when = when_session(refused["sessionId"])
        with listening(LOG, NOT_LOGGED) as ear:
            await sync_to_async(refuse)(Event, why=INVALID, when=when)
            gate.release()
            await ear.hears()
            other_gate.release()
            assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
        assert client.text(sent["turnId"]) == "one two three"
        await sync_to_async(accept)(Event)
        last.release()
        assert (await client.finished(refused["turnId"]))["type"] == "RUN_FINISHED"
        assert client.text(refused["turnId"]) == "one two three"


async def test_it_leaves_an_end_that_waits_to_the_next_process(
    gateway: GatewayHost, config: GatewayConfig, model: FakeModelServer, owner: User, full: None
) -> None:
    async with SocketClient(owner) as client:
        gate, sent = await begun(client, model)
        with listening(RUNNER, WAITS) as ear:
            await sync_to_async(refuse)(Message, when=f"NEW.{ANSWER}")
            gate.release()
            await ear.hears()
        await client.until(lambda: client.text(sent["turnId"]) == "one two three")
        await gateway.drain(0)
    assert (await turn_of(sent["turnId"])).state == "running"
    await sync_to_async(accept)(Message)
    following = GatewayHost(config)
    set_host(following)
    await following.start(checkpoint=False)
    try:
        async with SocketClient(owner) as client:
            await client.ok("session.subscribe", sessionId=sent["sessionId"], after=0)
            assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
    finally:
        await following.aclose()
    texts = [row[1] for row in await rows_of(sent["sessionId"])]
    assert texts[:2] == ["hello", "one two three"]


async def test_it_ends_a_run_once_though_the_news_of_its_commit_was_lost(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
    turn = await turn_of(sent["turnId"])
    assert turn.block is not None
    config = ("main", 1, "", "")
    lease = RunLease(turn.session_id, turn.pk, turn.generation, turn.block, config, owner.pk)
    with pytest.raises(RunFenced):
        await sync_to_async(write_run)(write=RunWrite(run=lease, state="failed"))
    assert (await turn_of(sent["turnId"])).state == "completed"
