"""What others write must be seen, in its place, and called by its name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from gateway_app.agent_cache import MAX_NEWS
from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from sessions_app import database as db
from sessions_app.fields import dump_json
from sessions_app.models import Message, Session
from sessions_app.services import (
    append_messages,
    delete_session,
    edit_message,
    end_session,
    undo_messages,
)
from sessions_app.transcript import NewMessage
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.coherence.elsewhere import (
    SocketConversation,
    cached,
    elsewhere,
    grows_only,
    in_database,
    level,
    messages,
    raw,
    raw_append,
    say_through,
    session_of,
    starts_with,
    texts_of,
)

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = Message._meta.db_table


def words(text: str) -> str:
    return dump_json([{"type": "text", "text": text}])


def row_ids(session_id: UUID) -> list[UUID]:
    rows = Message.objects.filter(session_id=session_id).order_by("position")
    return list(rows.values_list("pk", flat=True))


async def test_it_sends_a_whole_turn_of_another_process(
    gateway: GatewayHost,
    other: GatewayHost,
    model: FakeModelServer,
    conversation: SocketConversation,
    owner: User,
) -> None:
    """Case 11: in order, and after the bytes that the other process sent last."""
    await conversation.say("here")
    agent = cached(gateway, conversation.session_id)
    with elsewhere():
        there = await say_through(other, conversation.session_id, owner, "there")
    assert there.verdict == "reload"
    turn = await conversation.say("here again")
    assert turn.verdict == "catch_up"
    assert [text for role, text in messages(model, 2) if role == "user"] == [
        "here", "there", "here again",
    ]  # fmt: skip
    assert grows_only(model)
    assert cached(gateway, conversation.session_id) is agent
    assert await level(gateway, conversation.session_id)


async def test_it_keeps_the_bytes_before_a_foreign_row(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 12: only the suffix is new, and the agent is the same object."""
    await conversation.say("hello")
    agent = cached(gateway, conversation.session_id)
    await in_database(raw_append, conversation.session_id, "by an operator", "operator")
    turn = await conversation.say("again")
    assert (turn.verdict, turn.reason) == ("catch_up", "")
    assert turn.baseline is not None and turn.revision is not None
    assert turn.baseline < turn.revision
    assert grows_only(model)
    assert "by an operator" in messages(model, 1)[-2][1]
    assert cached(gateway, conversation.session_id) is agent


async def test_it_places_a_row_of_a_turns_midst_after_its_answer(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 14: the answer did not see it; the next request does."""
    await conversation.say("hello")
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    turn_id = await conversation.send("think")
    await model.request(1)

    def append() -> None:
        message = NewMessage(kind="user", parts=words("meanwhile"))
        append_messages(session_id=conversation.session_id, messages=[message])

    with elsewhere():
        await in_database(append)
    gate.release()
    await conversation.finished(turn_id)
    stored = [text for kind, text in await in_database(texts_of, conversation.session_id) if text]
    assert stored[-3:] == ["think", "one two", "meanwhile"]
    turn = await conversation.say("again")
    assert turn.verdict == "catch_up"
    assert messages(model, 2)[-3:] == [
        ("assistant", "one two"), ("user", "meanwhile"), ("user", "again"),
    ]  # fmt: skip
    assert grows_only(model)


async def test_it_detects_a_rewrite_of_the_same_size(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 15: two rows undone, two others appended; the count is what it was."""
    await conversation.say("one")
    await conversation.say("two")
    session_id = conversation.session_id
    before = await in_database(session_of, session_id)

    def rewrite() -> None:
        for row_id in undo_messages(session_id=session_id, count=2):
            Message.objects.filter(pk=row_id).delete()
        rows = [
            NewMessage(kind="user", parts=words("three")),
            NewMessage(kind="assistant", parts=words("four")),
        ]
        append_messages(session_id=session_id, messages=rows)

    with elsewhere():
        await in_database(rewrite)
    after = await in_database(session_of, session_id)
    assert after.message_count == before.message_count
    turn = await conversation.say("five")
    assert (turn.verdict, turn.reason) == ("rebuild", "rewritten")
    assert [text for _, text in messages(model, 2)[-3:]] == ["three", "four", "five"]
    assert (await conversation.say("six")).verdict == "reuse"


def edit_raw(row_id: UUID) -> None:
    raw(f"UPDATE {MESSAGE} SET parts = %s WHERE id = %s", words("changed"), row_id)


def edit_wire_text(row_id: UUID) -> None:
    raw(f"UPDATE {MESSAGE} SET sent_parts = %s WHERE id = %s", words("changed"), row_id)


def edit_by_service(row_id: UUID) -> None:
    session_id = Message.objects.values_list("session_id", flat=True).get(pk=row_id)
    edit_message(session_id=session_id, message_id=row_id, parts=words("changed"))


def there_and_back(row_id: UUID) -> None:
    """A-B-A: nothing is different in the end."""
    parts = Message.objects.values_list("parts", flat=True).get(pk=row_id)
    Message.objects.filter(pk=row_id).update(parts=[{"type": "text", "text": "between"}])
    Message.objects.filter(pk=row_id).update(parts=parts)


@pytest.mark.parametrize("edit", [edit_raw, edit_wire_text, edit_by_service])
async def test_it_detects_an_edit_in_place(
    gateway: GatewayHost,
    model: FakeModelServer,
    conversation: SocketConversation,
    edit: Callable[[UUID], None],
) -> None:
    """Case 17: the count does not move; the agent is patched, not loaded anew."""
    await conversation.say("hello")
    agent = cached(gateway, conversation.session_id)
    first = (await in_database(row_ids, conversation.session_id))[0]
    with elsewhere():
        await in_database(edit, first)
    turn = await conversation.say("again")
    assert (turn.verdict, turn.reason) == ("rebuild", "rewritten")
    assert messages(model, 1)[1] == ("user", "changed")
    assert cached(gateway, conversation.session_id) is agent


async def test_it_keeps_the_prefix_when_an_edit_was_taken_back(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """A-B-A is no rewrite: the clock moved, the bytes did not."""
    await conversation.say("hello")
    first = (await in_database(row_ids, conversation.session_id))[0]
    with elsewhere():
        await in_database(there_and_back, first)
    turn = await conversation.say("again")
    assert (turn.verdict, turn.reason) == ("catch_up", "")
    assert grows_only(model)


async def test_it_no_longer_sends_rows_that_were_undone_elsewhere(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 18."""
    await conversation.say("one")
    await conversation.say("two")
    with elsewhere():
        await in_database(undo_messages, session_id=conversation.session_id, count=2)
    turn = await conversation.say("three")
    assert (turn.verdict, turn.reason) == ("rebuild", "rewritten")
    assert [text for _, text in messages(model, 2)[1:]] == ["one", "Hello, world!", "three"]


async def test_it_refuses_a_session_that_was_deleted_elsewhere(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Cases 19 and 21: no write to it, no request for it, whether marked deleted or gone."""
    await conversation.say("hello")
    with elsewhere():
        await in_database(delete_session, session_id=conversation.session_id)
    rows = await in_database(texts_of, conversation.session_id)
    error = await conversation.refused("message.send", content="x", clientMessageId="late")
    assert error["code"] == "not_found"
    assert await in_database(texts_of, conversation.session_id) == rows
    await in_database(lambda: Session.objects.get(pk=conversation.session_id).delete())
    error = await conversation.refused("message.send", content="x", clientMessageId="later")
    assert error["code"] == "not_found"
    assert len(model.requests) == 1


async def test_it_writes_nothing_more_for_a_session_deleted_in_a_turns_midst(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 19: the run is fenced; its late answer goes nowhere."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    turn_id = await conversation.send("hello")
    await conversation.shown(turn_id)
    with elsewhere():
        await in_database(delete_session, session_id=conversation.session_id)
    gate.release()
    assert await gateway.runner.wait_idle(60)
    assert await in_database(texts_of, conversation.session_id) == [("user", "hello")]


async def test_it_refuses_a_session_that_ended_elsewhere(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 19: ended, and nobody took its key yet."""
    await conversation.say("hello")
    with elsewhere():
        await in_database(end_session, session_id=conversation.session_id)
    error = await conversation.refused("message.send", content="x", clientMessageId="late")
    assert error["code"] == "session_ended"
    assert len(model.requests) == 1


@contextmanager
def clock_unreadable(gateway: GatewayHost) -> Iterator[None]:
    """The database answers every statement but the guard's."""

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "s.removed_revision" in sql:
            raise OperationalError("the database is away")
        return execute(sql, params, many, context)

    def install() -> Any:
        wrappers = db.connection().execute_wrappers
        wrappers.append(refuse)
        return wrappers

    installed = []
    lanes = gateway.lanes
    installed.append(lanes.read(install))
    try:
        yield
    finally:
        for future in installed:
            future.result().remove(refuse)


@pytest.mark.parametrize("count", [MAX_NEWS - 1, MAX_NEWS])
async def test_it_tells_few_rows_one_by_one_and_many_at_once(
    conversation: SocketConversation, count: int
) -> None:
    """The next turn's own row is one of the news."""
    await conversation.say("hello")
    before = len(conversation.events())

    def append_all() -> int:
        for number in range(count):
            raw_append(conversation.session_id, f"raw {number}")
        rows = Message.objects.filter(session_id=conversation.session_id, turn_id=None)
        return rows.order_by("position").values_list("position", flat=True)[0]

    first = await in_database(append_all)
    turn = await conversation.say("again")
    assert turn.verdict == "catch_up"
    told = [frame["event"] for frame in conversation.events()[before:]]
    rows = [one["value"] for one in told if one.get("name") == "hermes.message"]
    raws = [row for row in rows if row.get("turnId") is None]
    rewritten = [one["value"]["fromPosition"] for one in told
                 if one.get("name") == "hermes.rewritten"]  # fmt: skip
    many = count == MAX_NEWS
    assert (len(raws), rewritten) == ((0, [first]) if many else (count, []))


class TestWithOneReader:
    """Cases in which the guard's own read fails: one thread reads, so that it can be told to."""

    @pytest.fixture
    def config(self, model: FakeModelServer) -> GatewayConfig:
        return GatewayConfig(
            openai_base_url=model.url, openai_api_key="sk-test", default_model="openai:fake-1",
            max_retries=0, reader_threads=1, postgres_threads=1,
        )  # fmt: skip

    async def test_it_never_answers_from_what_it_could_not_check(
        self, gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
    ) -> None:
        """Case 20: a visible notice, no request; the next message is answered coherently."""
        await conversation.say("hello")
        await in_database(raw_append, conversation.session_id, "unseen so far")
        with clock_unreadable(gateway):
            failed = await conversation.say("is anybody there")
        assert (failed.state, failed.error_code) == ("failed", "storage")
        assert len(model.requests) == 1
        kinds = [kind for kind, _ in await in_database(texts_of, conversation.session_id)]
        assert kinds[-1] == "notice"
        turn = await conversation.say("again")
        assert (turn.state, turn.verdict) == ("completed", "catch_up")
        assert ("user", "unseen so far") in messages(model, 1)
        assert starts_with(model.requests[1].body, model.requests[0].body)


async def test_it_refuses_what_it_cannot_read_until_it_is_mended(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """A row that nobody can read is neither left out nor guessed."""
    await conversation.say("hello")
    first = (await in_database(row_ids, conversation.session_id))[0]
    sql = f"UPDATE {MESSAGE} SET parts = %s WHERE id = %s"
    await in_database(raw, sql, '{"no":"list"}', first)
    failed = await conversation.say("again")
    assert (failed.state, failed.verdict, failed.reason) == ("failed", "refuse", "unreadable")
    assert len(model.requests) == 1
    await in_database(raw, sql, words("hello"), first)
    turn = await conversation.say("and again")
    assert (turn.state, turn.verdict) == ("completed", "catch_up")
    assert grows_only(model)
