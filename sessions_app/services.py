"""Every write of sessions and transcripts, but for those of a turn's own run."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from sessions_app import database as db
from sessions_app.branches import read_change
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.models import BLOCK, MODEL_KINDS, PERSON_KINDS, Message, Session
from sessions_app.sentences import say
from sessions_app.signals import session_listed
from sessions_app.transcript import (
    NewMessage,
    refuse_while_open,
    retry_lost_race,
    successor_of,
    write_transcript,
)

RESTORE_DAYS = 30


def create_session(
    *,
    key: str,
    owner_id: int | None,
    agent: str,
    title: str = "",
    model: str = "",
    create_id: str | None = None,
    create_hash: str | None = None,
) -> Session:
    """A new session is current under `key`.

    Raises IntegrityError when the key has a current one or `create_id` was used by this owner.
    """
    with transaction.atomic(using=db.alias()):
        session = Session.objects.create(
            key=key,
            owner_id=owner_id,
            agent=agent,
            title=title,
            model=model,
            create_id=create_id,
            create_hash=create_hash,
        )
        tell_listed(session.pk)
    session.refresh_from_db()
    return session


def get_or_create_session(
    *, key: str, owner_id: int | None, agent: str, title: str = ""
) -> tuple[Session, bool]:
    """The session that is current under `key`, and whether it was made now. Single-flight."""
    current = Session.objects.live().filter(key=key, state="active")
    if found := current.first():
        return found, False
    try:
        return create_session(key=key, owner_id=owner_id, agent=agent, title=title), True
    except IntegrityError:
        return current.get(), False


@retry_lost_race
def append_messages(*, session_id: UUID, messages: Sequence[NewMessage]) -> list[NewMessage]:
    """The rows stand at the end, each in a block of its own. Raises SessionNotFound, SessionEnded.

    So a row that is appended while a turn runs stands after the answer that did not see it.
    """
    with write_transcript(session_id) as (head, write):
        for place, message in enumerate(messages):
            message.position = (head.next_block + place) * BLOCK + 1
        write.insert(messages)
    return list(messages)


@retry_lost_race
def edit_message(*, session_id: UUID, message_id: UUID, parts: str) -> None:
    """The row says `parts` from now on, in place. Raises SessionBusy within a running turn."""
    with write_transcript(session_id) as (head, write):
        refuse_while_open(head, _position(session_id, message_id))
        write.set_parts(message_id, parts)


@retry_lost_race
def set_message_state(*, session_id: UUID, message_ids: Sequence[UUID], state: str) -> int:
    """The rows are in `state`; how many there were. Raises SessionBusy while a turn runs."""
    with write_transcript(session_id) as (head, write):
        refuse_while_open(head)
        return write.set_state(message_ids, state)


@retry_lost_race
def undo_messages(*, session_id: UUID, count: int) -> list[UUID]:
    """The last `count` active rows are hidden; their ids, oldest first.

    Markers that neither a model nor a person sees are neither counted nor hidden.
    """
    with write_transcript(session_id) as (head, write):
        refuse_while_open(head)
        rows = Message.objects.filter(
            session_id=session_id, state="active", kind__in=MODEL_KINDS | PERSON_KINDS
        )
        last = rows.order_by("-position").values_list("pk", flat=True)
        ids = list(last[:count])[::-1]
        write.set_state(ids, Message.State.HIDDEN)
    return ids


@retry_lost_race
def delete_messages(*, session_id: UUID, message_ids: Sequence[UUID]) -> int:
    """The rows are gone for good; how many there were."""
    with write_transcript(session_id) as (head, write):
        refuse_while_open(head)
        return write.delete(message_ids)


@retry_lost_race
def branch_from(*, session_id: UUID, position: int) -> list[UUID]:
    """Every active row from `position` on is `branched`; their ids. New rows open a new block."""
    with write_transcript(session_id) as (head, write):
        refuse_while_open(head)
        later = Message.objects.filter(
            session_id=session_id, state="active", position__gte=position
        )
        ids = list(later.values_list("pk", flat=True))
        write.set_state(ids, Message.State.BRANCHED)
    return ids


@retry_lost_race
def select_branch(*, session_id: UUID, message_id: UUID) -> tuple[int, int]:
    """The branch that holds the row is the active one; the revision after it, and the position
    from which the transcript differs. Raises MessageInvalid when the row is on no other branch.
    """
    with write_transcript(session_id) as (head, write):
        refuse_while_open(head)
        change = read_change(session_id, message_id)
        write.set_state(change.off, Message.State.BRANCHED)
        write.set_state(change.on, Message.State.ACTIVE)
    return write.revision, change.from_position


@retry_lost_race
def compact_messages(*, session_id: UUID, until_position: int, summary: NewMessage) -> int:
    """Active rows up to `until_position` are compacted; the summary stands where the last stood.

    Rows that arrived later survive after it. Returns how many rows it replaced.
    Raises MessageInvalid when there is nothing to replace.
    """
    with write_transcript(session_id) as (head, write):
        refuse_while_open(head, until_position)
        old = Message.objects.filter(
            session_id=session_id, state="active", position__lte=until_position
        ).order_by("position")
        ids = list(old.values_list("pk", flat=True))
        last = old.values_list("position", "parent_id").last()
        if last is None:
            raise MessageInvalid(say("There is nothing to summarise."))
        summary.position, summary.parent_id = last
        write.set_state(ids, Message.State.COMPACTED)
        write.insert([summary])
    return len(ids)


def end_session(*, session_id: UUID) -> None:
    """The session takes no more messages; its key is free for the next one."""
    with write_transcript(session_id) as (head, _):
        refuse_while_open(head)
        Session.objects.filter(pk=session_id).update(state="ended", ended_at=timezone.now())
        tell_listed(session_id)


def delete_session(*, session_id: UUID) -> None:
    """The session is gone from every door, restorable for RESTORE_DAYS. The clock stands still.

    The run generation rises, so a run that still writes is fenced.
    """
    generation = Session._meta.get_field("run_generation").column
    touched = db.execute(
        f"UPDATE {Session._meta.db_table} SET deleted_at = {db.now_sql()}, lease_owner = '',"
        f" lease_expires_at = NULL, {generation} = {generation} + 1"
        " WHERE id = %s AND deleted_at IS NULL",
        [db.db_uuid(session_id)],
    )
    if not touched:
        raise SessionNotFound
    tell_listed(session_id)


def restore_session(*, session_id: UUID, owner_id: int | None) -> None:
    """The owner's deleted session is back. Raises SessionNotFound after RESTORE_DAYS.

    If another session took over its key meanwhile, it is back as one that has ended.
    """
    try:
        _restore(session_id, owner_id)
    except IntegrityError:  # the key was taken between our look and our write: now it is seen
        _restore(session_id, owner_id)


def _restore(session_id: UUID, owner_id: int | None) -> None:
    since = timezone.now() - timedelta(days=RESTORE_DAYS)
    deleted = Session.objects.filter(pk=session_id, owner_id=owner_id, deleted_at__gte=since)
    with transaction.atomic(using=db.alias()):
        found = deleted.select_for_update(no_key=True).values_list("key", "state").first()
        if found is None:
            raise SessionNotFound(
                say("This conversation does not exist, or was deleted too long ago.")
            )
        key, state = found
        ended: dict[str, object] = {}
        if state == "active" and successor_of(key) is not None:
            ended = {"state": "ended", "ended_at": timezone.now()}
        deleted.update(deleted_at=None, **ended)
        tell_listed(session_id)


def update_session(*, session_id: UUID, **fields: object) -> None:
    """Changes title, pinned or archived: nothing that a model sees, so the clock stands still."""
    assert set(fields) <= {"title", "pinned", "archived", "agent", "agent_version", "model",
                           "prompt_hash"}  # fmt: skip
    if fields and not Session.objects.live().filter(pk=session_id).update(**fields):
        raise SessionNotFound
    tell_listed(session_id)


def tell_listed(session_id: UUID) -> None:
    """After the commit, lists are told that this session may stand otherwise in them."""
    transaction.on_commit(
        partial(session_listed.send_robust, sender=Session, session_id=session_id),
        using=db.alias(),
        robust=True,
    )


def _position(session_id: UUID, message_id: UUID) -> int:
    found = Message.objects.filter(pk=message_id, session_id=session_id)
    position = found.values_list("position", flat=True).first()
    if position is None:
        raise MessageInvalid(say("This message does not exist."))
    return position
