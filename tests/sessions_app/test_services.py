"""What services do to sessions and their rows, and what they refuse. On both databases."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError
from django.utils import timezone

from sessions_app import services
from sessions_app.errors import MessageInvalid, SessionBusy, SessionEnded, SessionNotFound
from sessions_app.fields import dump_json
from sessions_app.models import BLOCK, Message, Session
from sessions_app.transcript import NewMessage
from tests.factories import SessionFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


def new(text: str, kind: str = "user") -> NewMessage:
    return NewMessage(kind=kind, parts=dump_json([{"type": "text", "text": text}]))


def append(session: Session, *texts: str, kind: str = "user") -> list[NewMessage]:
    return services.append_messages(
        session_id=session.pk, messages=[new(text, kind) for text in texts]
    )


def rows(session: Session) -> list[tuple[str, str]]:
    """(text, state) of every row, in order."""
    found = Message.objects.filter(session=session).order_by("position", "id")
    return [(row.parts[0]["text"], row.state) for row in found]


def revision(session: Session) -> int:
    return Session.objects.values_list("revision", flat=True).get(pk=session.pk)


def hold(session: Session, block: int) -> None:
    """A turn runs in this block."""
    Session.objects.filter(pk=session.pk).update(open_block=block)


@pytest.fixture
def session() -> Session:
    made: Session = SessionFactory()
    return made


def test_it_appends_each_row_in_a_block_of_its_own_behind_the_one_before(session: Session) -> None:
    first, second = append(session, "one", "two")
    [third] = append(session, "three")
    stored = list(Message.objects.order_by("position").values_list("pk", "position", "parent_id"))
    assert [pk for pk, _, _ in stored] == [first.id, second.id, third.id]
    assert [position // BLOCK for _, position, _ in stored] == [1, 2, 3]
    assert [parent for _, _, parent in stored] == [None, first.id, second.id]
    assert Session.objects.get(pk=session.pk).message_count == 3


def test_it_appends_behind_the_block_of_a_running_turn(session: Session) -> None:
    append(session, "one")
    Session.objects.filter(pk=session.pk).update(open_block=2, next_block=3)
    [later] = append(session, "from elsewhere")
    assert later.position == 3 * BLOCK + 1


@pytest.mark.parametrize(
    "change",
    [
        lambda pk: services.append_messages(session_id=pk, messages=[new("x")]),
        lambda pk: services.undo_messages(session_id=pk, count=1),
        lambda pk: services.end_session(session_id=pk),
        lambda pk: services.branch_from(session_id=pk, position=1),
        lambda pk: services.set_message_state(session_id=pk, message_ids=[], state="hidden"),
    ],
)
def test_it_writes_to_no_session_that_is_gone_or_over(
    session: Session, change: Callable[[object], object]
) -> None:
    with pytest.raises(SessionNotFound):
        change(uuid4())
    services.end_session(session_id=session.pk)
    with pytest.raises(SessionEnded):
        change(session.pk)
    services.delete_session(session_id=session.pk)
    with pytest.raises(SessionNotFound):
        change(session.pk)
    assert rows(session) == []


def test_it_edits_a_row_in_place_but_none_of_a_running_turn(session: Session) -> None:
    first, second = append(session, "one", "two")
    hold(session, 2)
    parts = dump_json([{"type": "text", "text": "uno"}])
    before = revision(session)
    services.edit_message(session_id=session.pk, message_id=first.id, parts=parts)
    with pytest.raises(SessionBusy):
        services.edit_message(session_id=session.pk, message_id=second.id, parts=parts)
    with pytest.raises(MessageInvalid):
        services.edit_message(session_id=session.pk, message_id=uuid4(), parts=parts)
    assert rows(session) == [("uno", "active"), ("two", "active")]
    assert revision(session) == before + 1


def test_it_undoes_what_somebody_sees_and_leaves_markers_alone(session: Session) -> None:
    append(session, "one", "two")
    append(session, "meta", kind="session_meta")
    append(session, "three", kind="assistant")
    append(session, "private", kind="note")
    services.undo_messages(session_id=session.pk, count=2)
    assert rows(session) == [
        ("one", "active"), ("two", "hidden"), ("meta", "active"), ("three", "hidden"),
        ("private", "active"),
    ]  # fmt: skip
    hold(session, 9)
    with pytest.raises(SessionBusy):
        services.undo_messages(session_id=session.pk, count=1)


def test_it_branches_and_switches_back(session: Session) -> None:
    append(session, "one")
    old = append(session, "two", "answer to two")
    services.branch_from(session_id=session.pk, position=old[0].position)
    services.append_messages(session_id=session.pk, messages=[new("zwei")])
    states = [state for _, state in rows(session)]
    assert states == ["active", "branched", "branched", "active"]
    before = revision(session)
    revised, position = services.select_branch(session_id=session.pk, message_id=old[1].id)
    assert revised > before and position == old[0].position
    states = [state for _, state in rows(session)]
    assert states == ["active", "active", "active", "branched"]
    with pytest.raises(MessageInvalid):
        services.select_branch(session_id=session.pk, message_id=old[1].id)


def test_it_compacts_up_to_a_row_and_keeps_what_came_later(session: Session) -> None:
    old = append(session, "one", "two")
    append(session, "three")
    replaced = services.compact_messages(
        session_id=session.pk, until_position=old[1].position, summary=new("so far", "summary")
    )
    assert replaced == 2
    active = Message.objects.filter(session=session, state="active").order_by("position")
    texts = [(row.kind, row.parts[0]["text"], row.position) for row in active]
    assert texts[0] == ("summary", "so far", old[1].position)
    assert [text for _, text, _ in texts] == ["so far", "three"]
    with pytest.raises(MessageInvalid):
        services.compact_messages(
            session_id=session.pk, until_position=1, summary=new("nothing", "summary")
        )


def test_it_deletes_rows_for_good(session: Session) -> None:
    kept, gone = append(session, "one", "two")
    other: Session = SessionFactory()
    [theirs] = append(other, "theirs")
    ids = [gone.id, theirs.id, uuid4()]
    assert services.delete_messages(session_id=session.pk, message_ids=ids) == 1
    assert rows(session) == [("one", "active")]
    assert rows(other) == [("theirs", "active")]
    assert Session.objects.get(pk=session.pk).removed_revision == revision(session)
    assert Message.objects.filter(pk=kept.id).exists()


def test_it_has_one_current_session_a_key() -> None:
    owner = UserFactory()
    first, made = services.get_or_create_session(key="k", owner_id=owner.pk, agent="main")
    again, made_again = services.get_or_create_session(key="k", owner_id=owner.pk, agent="main")
    assert (made, made_again, again.pk) == (True, False, first.pk)
    with pytest.raises(IntegrityError):
        services.create_session(key="k", owner_id=owner.pk, agent="main")
    services.end_session(session_id=first.pk)
    second, _ = services.get_or_create_session(key="k", owner_id=owner.pk, agent="main")
    assert second.pk != first.pk
    with pytest.raises(SessionEnded) as ended:
        append(first, "late")
    assert ended.value.successor_id == second.pk


def test_it_restores_what_was_deleted_to_its_owner_for_a_while(session: Session) -> None:
    append(session, "one")
    clock = revision(session)
    generation = session.run_generation
    services.delete_session(session_id=session.pk)
    with pytest.raises(SessionNotFound):
        services.delete_session(session_id=session.pk)
    with pytest.raises(SessionNotFound):
        services.restore_session(session_id=session.pk, owner_id=UserFactory().pk)
    services.restore_session(session_id=session.pk, owner_id=session.owner_id)
    back = Session.objects.get(pk=session.pk)
    assert (back.deleted_at, back.state, back.revision) == (None, "active", clock)
    assert back.run_generation > generation
    long_ago = timezone.now() - timedelta(days=services.RESTORE_DAYS + 1)
    Session.objects.filter(pk=session.pk).update(deleted_at=long_ago)
    with pytest.raises(SessionNotFound):
        services.restore_session(session_id=session.pk, owner_id=session.owner_id)


def test_it_restores_as_ended_what_another_session_followed(session: Session) -> None:
    services.delete_session(session_id=session.pk)
    services.create_session(key=session.key, owner_id=session.owner_id, agent="main")
    services.restore_session(session_id=session.pk, owner_id=session.owner_id)
    back = Session.objects.get(pk=session.pk)
    assert (back.deleted_at, back.state) == (None, "ended")
    assert back.ended_at is not None
