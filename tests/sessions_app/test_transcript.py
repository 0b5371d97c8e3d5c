"""The unit of writing: what a transaction announces, and when."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from django.db import IntegrityError, OperationalError, transaction

from sessions_app import services
from sessions_app.errors import SessionBusy
from sessions_app.fields import dump_json
from sessions_app.models import BLOCK, Message, Session
from sessions_app.signals import TranscriptCommit, transcript_committed
from sessions_app.transcript import (
    NewMessage,
    SessionHead,
    read_revision,
    refuse_while_open,
    retry_lost_race,
    write_transcript,
)
from tests.factories import MessageFactory, SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = dump_json([{"type": "text", "text": "x"}])


@pytest.fixture
def heard() -> Iterator[list[TranscriptCommit]]:
    """Every commit that was announced, in order."""
    commits: list[TranscriptCommit] = []

    def hear(commit: TranscriptCommit, **_: object) -> None:
        commits.append(commit)

    transcript_committed.connect(hear)
    yield commits
    transcript_committed.disconnect(hear)


@pytest.fixture
def session() -> Session:
    made: Session = SessionFactory()
    return made


def row(block: int) -> NewMessage:
    return NewMessage(kind="user", parts=TEXT, position=block * BLOCK + 1)


def test_it_announces_exactly_its_own_work(session: Session, heard: list[TranscriptCommit]) -> None:
    MessageFactory(session=session)
    before = read_revision(session.pk)
    with write_transcript(session.pk) as (head, write):
        assert head.revision == before
        write.insert([first := row(head.next_block), second := row(head.next_block + 1)])
        write.set_state([first.id], "hidden")
        assert heard == []
    [commit] = heard
    assert (commit.session_id, commit.from_revision) == (session.pk, before)
    assert commit.revision == read_revision(session.pk) > before
    assert {told.id: told.state for told in commit.rows} == {
        first.id: "hidden",
        second.id: "active",
    }
    assert not commit.removed


def test_it_announces_nothing_of_what_was_rolled_back(
    session: Session, heard: list[TranscriptCommit]
) -> None:
    before = read_revision(session.pk)
    with pytest.raises(RuntimeError), transaction.atomic():
        with write_transcript(session.pk) as (head, write):
            write.insert([row(head.next_block)])
        raise RuntimeError
    assert heard == []
    assert read_revision(session.pk) == before


def test_it_tells_of_a_removal(session: Session, heard: list[TranscriptCommit]) -> None:
    message = MessageFactory(session=session)
    with write_transcript(session.pk) as (_, write):
        assert write.delete([message.pk]) == 1
    assert heard[-1].removed


def test_it_tells_others_though_one_who_hears_breaks(
    session: Session, heard: list[TranscriptCommit], caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(**_: object) -> None:
        raise RuntimeError("a receiver of a test")

    transcript_committed.connect(breaks)
    try:
        services.append_messages(session_id=session.pk, messages=[row(0)])
    finally:
        transcript_committed.disconnect(breaks)
    assert len(heard) == 1
    assert Message.objects.count() == 1


def test_it_takes_more_ids_than_a_statement_has_room_for(
    session: Session, heard: list[TranscriptCommit]
) -> None:
    ids: list[UUID] = [one.pk for one in MessageFactory.create_batch(3, session=session)]
    many = [*(UUID(int=number) for number in range(1200)), *ids]
    with write_transcript(session.pk) as (_, write):
        assert write.set_state(many, "hidden") == 3
    assert {told.id for told in heard[-1].rows} == set(ids)


@pytest.mark.parametrize(
    ("open_block", "position", "busy"),
    [(0, None, False), (3, None, True), (3, 3 * BLOCK, True), (3, 3 * BLOCK - 1, False)],
)
def test_it_refuses_what_a_running_turn_stands_on(
    session: Session, open_block: int, position: int | None, busy: bool
) -> None:
    head = SessionHead(session.pk, 0, 0, 9, open_block)
    if not busy:
        refuse_while_open(head, position)
        return
    with pytest.raises(SessionBusy):
        refuse_while_open(head, position)


class Deadlock(Exception):
    sqlstate = "40P01"


def lost(times: int, error: Exception) -> list[Exception]:
    return [error] * times


@pytest.mark.parametrize(
    ("errors", "calls", "raises"),
    [
        (2, 3, False),
        (3, 3, True),
    ],
)
def test_it_tries_twice_more_what_lost_a_race(errors: int, calls: int, raises: bool) -> None:
    deadlock = OperationalError("deadlock detected")
    deadlock.__cause__ = Deadlock()
    left, called = lost(errors, deadlock), []

    @retry_lost_race
    def service() -> str:
        called.append(1)
        if left:
            raise left.pop()
        return "done"

    if raises:
        with pytest.raises(OperationalError):
            service()
    else:
        assert service() == "done"
    assert len(called) == calls


@pytest.mark.parametrize(
    "error", [OperationalError("disk full"), IntegrityError("some other constraint")]
)
def test_it_tries_nothing_again_that_lost_no_race(error: Exception) -> None:
    called = []

    @retry_lost_race
    def service() -> None:
        called.append(1)
        raise error

    with pytest.raises(type(error)):
        service()
    assert len(called) == 1


def test_it_leaves_another_try_to_whoever_owns_the_transaction() -> None:
    called = []

    @retry_lost_race
    def service() -> None:
        called.append(1)
        raise IntegrityError("message_position_once: position")

    with pytest.raises(IntegrityError), transaction.atomic():
        service()
    assert len(called) == 1
