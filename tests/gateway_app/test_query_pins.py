"""What a turn costs the database: pinned, and the same however long its conversation is."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection

from gateway_app import housekeeping
from gateway_app.config import GatewayConfig
from gateway_app.event_store import fold_run
from gateway_app.host import GatewayHost
from gateway_app.models import AgentVersion, Event, Turn
from sessions_app.models import BLOCK, Message, Session
from tests.factories import SessionFactory
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.heart import beat
from tests.http_client import HttpClient
from tests.socket_client import SocketClient
from tests.statements import (
    Statement,
    Statements,
    every_statement,
    postgres_plan,
    sqlite_plan,
    steps_of_sqlite,
)

pytestmark = pytest.mark.django_db(transaction=True)

on_sqlite = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="asks SQLite how it does the work"
)

PLAIN_TURN = 10
FIRST_TURN = 16
TOOL_STEP = 6
WRITE_TRANSACTIONS = 2
FLUSH = 3
"""Statements of one flush: PostgreSQL locks what is free first."""


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """Nothing but turns speaks to the database."""
    return replace(
        config,
        heartbeat_s=3600,
        poll_s=3600,
        housekeeping_s=3600,
        presence_s=3600,
        news_tick_ms=3_600_000,
    )


@sync_to_async
def session_with_history(owner: User, turns: int) -> str:
    """A conversation of so many completed turns, log included."""
    session = SessionFactory(owner=owner)
    text = [{"type": "text", "text": "word " * 20}]
    rows, runs, events = [], [], []
    for block in range(1, turns + 1):
        run = Turn(
            session=session, state="completed", author=owner, body_hash="", content=text,
            client_message_id=f"{session.pk}-{block}", accepted_seq=block, block=block,
            generation=block,
        )  # fmt: skip
        runs.append(run)
        for place, kind in enumerate(("user", "assistant"), start=1):
            position = block * BLOCK + place
            rows.append(
                Message(
                    session=session, kind=kind, parts=text, position=position, turn_id=run.pk,
                    parent=rows[-1] if rows else None,
                )
            )  # fmt: skip
        events.append(Event(session=session, seq=block, turn_id=run.pk, body="[]"))
    Turn.objects.bulk_create(runs, batch_size=500)
    Message.objects.bulk_create(rows, batch_size=500)
    Event.objects.bulk_create(events, batch_size=500)
    Session.objects.filter(pk=session.pk).update(event_seq=turns, run_generation=turns)
    return str(session.pk)


async def record_turn(client: SocketClient, gateway: GatewayHost, session_id: str) -> Statements:
    """The statements of one turn, from its message to the last thing its run does."""
    with every_statement() as statements:
        sent = await client.say("one more", session_id)
        assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
        assert await gateway.runner.wait_idle(60)
    return statements


async def record_later_turn(
    client: SocketClient, gateway: GatewayHost, owner: User, turns: int
) -> Statements:
    """The statements of a warm turn in a conversation of so many turns."""
    session_id = await session_with_history(owner, turns)
    await client.ok("session.subscribe", sessionId=session_id)
    await record_turn(client, gateway, session_id)
    return await record_turn(client, gateway, session_id)


def shape(statements: list[Statement]) -> list[tuple[str, int]]:
    return [(one.sql, len(one.params or ())) for one in statements]


async def test_it_keeps_a_turn_at_its_statements_however_long_the_history(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        short = await record_later_turn(client, gateway, owner, turns=2)
        long = await record_later_turn(client, gateway, owner, turns=2000)
    for turn in (short, long):
        tables = "\n".join(one.sql for one in turn.others)
        for table in (Turn, Message, Session, Event):
            assert table._meta.db_table in tables
        assert len(turn.others) <= PLAIN_TURN, shape(turn.others)
        assert turn.write_transactions <= WRITE_TRANSACTIONS
    assert shape(long.others) == shape(short.others)


async def test_it_keeps_a_first_turn_at_its_statements(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        made = await client.ok("session.create", clientMessageId="new")
        session_id = made["session"]["id"]
        await client.ok("session.subscribe", sessionId=session_id)
        turn = await record_turn(client, gateway, session_id)
    assert len(turn.others) <= FIRST_TURN, shape(turn.others)
    assert turn.write_transactions <= WRITE_TRANSACTIONS


async def test_it_keeps_a_step_of_tools_at_its_statements(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """However many calls: who asked is read once, the step is one transaction, the log waits."""
    await sync_to_async(AgentVersion.objects.update)(tools="look")
    found = []
    async with SocketClient(owner) as client:
        session_id = (await client.say("hello"))["sessionId"]
        assert await gateway.runner.wait_idle(60)
        for calls in (1, 8):
            made = [ToolCall(f"{calls}-{number}", "look") for number in range(calls)]
            model.script(Script(tokens=[], tool_calls=made))
            found.append(await record_turn(client, gateway, session_id))
    for turn in found:
        assert len(turn.others) <= PLAIN_TURN + TOOL_STEP, shape(turn.others)
        assert turn.write_transactions <= WRITE_TRANSACTIONS + 1
    assert len(found[0].others) == len(found[1].others)


async def test_it_writes_no_statement_a_token(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.default = Script(tokens=[f"word{number} " for number in range(2000)])
    async with SocketClient(owner) as client:
        turn = await record_later_turn(client, gateway, owner, turns=2)
    assert len(turn.others) <= PLAIN_TURN
    flushes = {one.transaction for one in turn.flushes}
    assert len(turn.flushes) <= FLUSH * len(flushes)
    assert 1 <= len(flushes) < 200


@on_sqlite
async def test_it_does_no_more_work_in_a_turn_of_a_longer_history(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        steps = {}
        for turns in (2, 2000):
            session_id = await session_with_history(owner, turns)
            await client.ok("session.subscribe", sessionId=session_id)
            await record_turn(client, gateway, session_id)
            with steps_of_sqlite() as counted:
                await record_turn(client, gateway, session_id)
            steps[turns] = len(counted)
    assert steps[2] > 0
    assert steps[2000] <= 1.5 * steps[2], steps  # a flush more or less is chance


@on_sqlite
async def test_it_reads_no_table_without_an_index(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    tables = [one._meta.db_table for one in (Session, Message, Turn, Event)]
    names = {*tables, "s", "t", "m", "w", "e"}  # and what statements call them
    async with SocketClient(owner) as client:
        first = await client.say("hello")
        await client.finished(first["turnId"])
        turn = await record_later_turn(client, gateway, owner, turns=20)
        with every_statement() as beats:
            await beat(gateway)
    found = [*turn.found, *beats.found]
    assert len(found) > PLAIN_TURN
    plans = await sync_to_async(lambda: [(one, sqlite_plan(connection, one)) for one in found])()
    assert any("SEARCH" in line for _, lines in plans for line in lines)
    for statement, lines in plans:
        scans = [line for line in lines if re.match(r"SCAN (\w+)", line)]
        assert not [line for line in scans if line.split()[1] in names], (statement.sql, lines)


@on_sqlite
async def test_it_does_no_more_work_around_a_turn_of_a_longer_history(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """A snapshot amid the answer, a message that waits, a stop, the fold of the ended turn."""
    steps = {}
    async with SocketClient(owner) as client:
        for turns in (2, 2000):
            session_id = await session_with_history(owner, turns)
            gate = Gate()
            model.script(Script(tokens=["one ", "two"], gates={1: gate}))
            await client.ok("session.subscribe", sessionId=session_id)
            sent = await client.say("one more", session_id)
            await client.until(lambda sent=sent: client.text(sent["turnId"]))
            with steps_of_sqlite() as counted:
                await client.ok("session.subscribe", sessionId=session_id)
            with steps_of_sqlite() as queued:
                await client.say("and another", session_id)
            with steps_of_sqlite() as stopped:
                await client.ok("turn.stop", sessionId=session_id, clearQueue=True)
            gate.release()
            await client.finished(sent["turnId"])
            assert await gateway.runner.wait_idle(60)
            with steps_of_sqlite() as folded:
                await gateway.lanes.write(fold_run, UUID(session_id), UUID(sent["turnId"]))
            steps[turns] = [len(one) for one in (counted, queued, stopped, folded)]
    page = 600  # a snapshot's page is full only where the history is long
    for short, long, more in zip(steps[2], steps[2000], [page, 0, 0, 0], strict=True):
        assert 0 < long <= 2 * short + more, steps


RETENTION = (
    housekeeping.find_unfolded_turns,
    housekeeping.find_old_events,
    housekeeping.find_surplus_events,
    housekeeping.find_purgeable_sessions,
)


@pytest.mark.parametrize("find", RETENTION, ids=lambda find: find.__name__)
def test_it_finds_what_is_to_go_by_index(find: Callable[[], Sequence[object]]) -> None:
    with every_statement() as statements:
        find()
    [statement] = statements.found
    plan = sqlite_plan if connection.vendor == "sqlite" else postgres_plan
    steps = plan(connection, statement)
    assert any("index" in step.lower() for step in steps), steps
    assert not [step for step in steps if re.match(r"\W*(SCAN|Seq Scan)", step)], steps


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/sessions", 2),
        ("/sessions?query=on", 2),
        ("/sessions/{}", 2),
        ("/sessions/{}/messages?limit=20", 6),
        ("/sessions/{}/turns?limit=20", 3),
        ("/usage", 2),
    ],
)
async def test_it_answers_over_http_by_the_same_statements_however_much_there_is(
    gateway: GatewayHost, owner: User, path: str, most: int
) -> None:
    client, found = HttpClient(owner), []
    for turns in (20, 200):
        session_id = await session_with_history(owner, turns)
        for _ in range(turns // 10):
            await sync_to_async(SessionFactory)(owner=owner)
        await client.ok("GET", "/me")  # which notes that the token was used
        with every_statement() as statements:
            await client.ok("GET", path.format(session_id))
        found.append(shape(statements.found))
    assert len(found[0]) == len(found[1]) <= most, found
