"""Every list of a person hears of every session of theirs, watched or not, and of no other."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.sql.compiler import SQLCompiler

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import ReadMark
from gateway_app.selectors.sessions import list_sessions, listed, own_listed, read_listed
from gateway_app.services.sessions import mark_seen
from sessions_app import services
from sessions_app.errors import SessionNotFound
from sessions_app.models import Session
from sessions_app.transcript import NewMessage
from tests.factories import MessageFactory, SessionFactory, SuperuserFactory, TurnFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.socket_client import SocketClient
from tests.statements import every_statement, sqlite_plan

pytestmark = pytest.mark.django_db(transaction=True)

SENTENCE = [f"word{number} " for number in range(500)]


def row(client: SocketClient, session_id: str) -> dict[str, Any] | None:
    """The session as the newest control frame has it; None: there was none."""
    frames = [one for one in client.frames if one.get("type") == "session"]
    found = [one["session"] for one in frames if one["session"]["id"] == session_id]
    return found[-1] if found else None


def shows(client: SocketClient, session_id: str, **fields: object) -> bool:
    found = row(client, session_id)
    return found is not None and fields.items() <= found.items()


def gone(client: SocketClient, session_id: str) -> bool:
    return {"type": "gone", "sessionId": session_id} in client.frames


async def test_it_tells_another_tab_of_everything_that_becomes_of_a_session(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(tokens=["so ", "far"], gates={1: gate}), Script(status=500))
    async with SocketClient(owner) as one, SocketClient(owner) as other:
        sent = await one.say("A question")
        name = sent["sessionId"]
        await other.until(lambda: shows(other, name, running=True, title="A question"))
        gate.release()
        await other.until(lambda: shows(other, name, running=False, failed=False, unread=True))
        await one.say("Another", name)
        await other.until(lambda: shows(other, name, running=False, failed=True))
        await one.ok("session.update", sessionId=name, title="Named", pinned=True)
        await other.until(lambda: shows(other, name, title="Named", pinned=True))
        await one.ok("session.update", sessionId=name, archived=True)
        await other.until(lambda: shows(other, name, archived=True))
        await one.ok("session.delete", sessionId=name)
        await other.until(lambda: gone(other, name))
        other.frames.clear()
        await one.ok("session.restore", sessionId=name)
        await other.until(lambda: shows(other, name, title="Named"))
        assert not other.events()


async def test_it_tells_of_a_session_that_was_read_on_another_device(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as one, SocketClient(owner) as other:
        sent = await one.say("A question")
        name = sent["sessionId"]
        await one.finished(sent["turnId"])
        await other.until(lambda: shows(other, name, running=False, unread=True))
        assert (await other.ok("session.list"))["sessions"][0]["unread"]
        before = await sync_to_async(Session.objects.get)(pk=name)
        await one.ok("session.seen", sessionId=name, revision=before.revision)
        await other.until(lambda: shows(other, name, unread=False))
        assert not (await other.ok("session.list"))["sessions"][0]["unread"]
        after = await sync_to_async(Session.objects.get)(pk=name)
        assert (after.revision, after.event_seq, after.updated_at) == (
            before.revision, before.event_seq, before.updated_at,
        )  # fmt: skip


async def test_it_tells_of_what_another_process_or_the_admin_did(
    gateway: GatewayHost, owner: User
) -> None:
    session = await sync_to_async(SessionFactory)(owner=owner)
    name = str(session.pk)
    async with SocketClient(owner) as client:
        await sync_to_async(services.update_session)(session_id=session.pk, title="By the admin")
        await client.until(lambda: shows(client, name, title="By the admin"))
        await sync_to_async(Session.objects.filter(pk=name).update)(title="Elsewhere")
        gateway.news.note_elsewhere(session.pk)
        await client.until(lambda: shows(client, name, title="Elsewhere"))
        await sync_to_async(services.delete_session)(session_id=session.pk)
        await client.until(lambda: gone(client, name))


async def test_it_tells_of_a_row_that_somebody_else_wrote(
    gateway: GatewayHost, owner: User
) -> None:
    session = await sync_to_async(SessionFactory)(owner=owner)
    row = NewMessage(kind="operator", parts='[{"type":"text","text":"From a person"}]')
    async with SocketClient(owner) as client:
        await sync_to_async(services.append_messages)(session_id=session.pk, messages=[row])
        await client.until(lambda: shows(client, str(session.pk), unread=True))


async def test_it_tells_nobody_else(
    gateway: GatewayHost, model: FakeModelServer, owner: User, stranger: User
) -> None:
    root = await sync_to_async(SuperuserFactory)()
    async with (
        SocketClient(owner) as ann,
        SocketClient(stranger) as bob,
        SocketClient(root) as operator,
    ):
        sent = await ann.say("A secret")
        await ann.until(lambda: shows(ann, sent["sessionId"], running=False))
        for other in (bob, operator):
            assert not [one for one in other.frames if one.get("type") in {"session", "gone"}]


async def test_it_says_nothing_of_what_was_rolled_back(gateway: GatewayHost, owner: User) -> None:
    session = await sync_to_async(SessionFactory)(owner=owner)

    def roll_back() -> None:
        with transaction.atomic():
            services.update_session(session_id=session.pk, title="Never")
            transaction.set_rollback(True)

    async with SocketClient(owner) as client:
        await sync_to_async(roll_back)()
        await sync_to_async(services.update_session)(session_id=session.pk, title="Kept")
        await client.until(lambda: row(client, str(session.pk)))
        titles = [one["session"]["title"] for one in client.frames if one.get("type") == "session"]
        assert titles == ["Kept"]


class TestStatements:
    @pytest.fixture
    def config(self, config: GatewayConfig) -> GatewayConfig:
        return replace(config, heartbeat_s=3600, poll_s=3600, housekeeping_s=3600, news_tick_ms=1)

    async def test_it_reads_for_lists_at_the_ends_of_a_turn_and_for_no_delta(
        self, gateway: GatewayHost, model: FakeModelServer, owner: User
    ) -> None:
        model.script(Script(), Script(tokens=SENTENCE))
        async with SocketClient(owner) as client:
            sent = await client.say("first")
            name = sent["sessionId"]
            await client.until(lambda: shows(client, name, running=False))
            client.frames.clear()
            with every_statement() as statements:
                sent = await client.say("second", name)
                await client.finished(sent["turnId"])
                await client.until(lambda: shows(client, name, running=False))
        reads = [one.sql for one in statements.found if "readmark" in one.sql]
        assert 1 <= len(reads) <= 3, reads


def marks(session: Session) -> tuple[bool, bool]:
    _, shape = listed(Session.objects.filter(pk=session.pk))[0]
    return shape["unread"], shape["failed"]


def test_it_counts_as_unread_what_came_after_the_mark() -> None:
    session = SessionFactory()
    assert marks(session) == (False, False)
    MessageFactory(session=session)
    assert marks(session) == (True, False)
    session.refresh_from_db()
    owner = session.owner_id
    mark_seen(user_id=owner, session_id=session.pk, revision=session.revision)
    assert marks(session) == (False, False)
    MessageFactory(session=session, kind="note")
    MessageFactory(session=session, author=session.owner)
    assert marks(session) == (False, False)
    MessageFactory(session=session, kind="operator")
    assert marks(session) == (True, False)


def test_it_never_takes_a_mark_back_nor_ahead_of_the_transcript() -> None:
    session = SessionFactory()
    MessageFactory(session=session)
    session.refresh_from_db()
    for seen in (10**9, 0):
        mark_seen(user_id=session.owner_id, session_id=session.pk, revision=seen)
        assert ReadMark.objects.get().revision == session.revision


def test_it_tells_of_sessions_what_a_list_of_them_shows() -> None:
    read, unread, failed, deleted = (SessionFactory(title=title) for title in "abcd")
    nobodys = SessionFactory(owner=None)
    for session in (read, unread):
        MessageFactory(session=session)
    read.refresh_from_db()
    mark_seen(user_id=read.owner_id, session_id=read.pk, revision=read.revision)
    TurnFactory(session=failed, state="failed")
    services.delete_session(session_id=deleted.pk)
    there = [read, unread, failed]
    told = read_listed([one.pk for one in (*there, deleted, nobodys)])
    assert told.pop(deleted.pk) == (deleted.owner_id, None)
    assert told == {
        one.pk: (one.owner_id, shape)
        for one, shape in listed(Session.objects.filter(pk__in=[one.pk for one in there]))
    }
    with pytest.raises(SessionNotFound):
        own_listed(deleted.owner_id, deleted.pk)
    with pytest.raises(SessionNotFound):
        own_listed(read.owner_id, unread.pk)


@pytest.mark.parametrize("count", [1, 3])
def test_it_puts_the_statement_for_lists_together_once(count: int) -> None:
    names = [SessionFactory().pk for _ in range(count)]
    assert len(read_listed(names)) == count
    with patch.object(SQLCompiler, "as_sql", side_effect=AssertionError("compiled again")):
        assert len(read_listed(names)) == count


@pytest.mark.parametrize(("state", "failed"), [
    ("failed", True), ("interrupted", True), ("completed", False), ("stopped", False),
])  # fmt: skip
def test_it_marks_a_session_by_how_its_last_turn_ended(state: str, failed: bool) -> None:
    session = SessionFactory()
    TurnFactory(session=session, state="failed" if not failed else "completed")
    TurnFactory(session=session, state=state)
    assert marks(session)[1] is failed


@pytest.mark.skipif(connection.vendor != "sqlite", reason="asks SQLite how it does the work")
def test_it_lists_by_indexes_whatever_a_session_holds() -> None:
    session = SessionFactory()
    MessageFactory(session=session)
    with every_statement() as statements:
        assert read_listed([session.pk])
        list_sessions(
            user_id=session.owner_id, query=None, cursor=None, limit=9, archived=False, pinned=False
        )
    assert len(statements.found) == 2
    plans = [line for one in statements.found for line in sqlite_plan(connection, one)]
    assert any("message_changed" in line for line in plans), plans
    assert not [line for line in plans if line.startswith("SCAN")], plans
