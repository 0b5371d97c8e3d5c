"""Stop, and edits of the queue, by the people of a session."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway_app import events
from gateway_app.event_store import LoggedEvents, insert_events
from gateway_app.models import Turn
from gateway_app.selectors.queue import WAITING, read_queue
from gateway_app.services.busy import check_change, head_priority, request_stop
from gateway_app.services.ended import count_ended
from gateway_app.shapes import Shape
from sessions_app import database as db
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.models import Session
from sessions_app.sentences import say

_SESSION: Final = Session._meta.db_table


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stop that was recorded. `running`: (turn, generation) of the run it is meant for."""

    session_id: UUID
    running: tuple[UUID, int] | None
    logged: tuple[LoggedEvents, ...] = ()


def stop_turn(
    *, user_id: int, session_id: UUID | None, turn_id: UUID | None, clear_queue: bool = False
) -> Stopped:
    """The running turn is told to stop; a waiting one (by `turn_id`) is stopped at once.

    Idempotent: a turn that has ended stays as it is. Raises SessionNotFound.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        session_id = _lock_own(user_id, session_id, turn_id)
        return stop_locked(session_id, turn_id, clear_queue=clear_queue)


def stop_locked(session_id: UUID, turn_id: UUID | None, *, clear_queue: bool = False) -> Stopped:
    """Within a transaction that holds the session: what `stop_turn` says."""
    running = request_stop(session_id, turn_id)
    waiting = Turn.objects.filter(WAITING, session_id=session_id)
    gone = waiting if clear_queue else waiting.filter(pk__in=[turn_id] if turn_id else [])
    changed = gone.update(state="stopped", finished_at=timezone.now(), finish="stopped")
    count_ended("stopped", changed)
    logged = (log_queue(session_id),) if changed else ()
    return Stopped(session_id, running, logged)


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The queue after a change. `stopping`: (turn, generation) of the run that was told to stop."""

    queue: list[Shape]
    logged: LoggedEvents
    stopping: tuple[UUID, int] | None = None


def edit_queued(
    *,
    user_id: int,
    turn_id: UUID,
    content: list[dict[str, Any]] | None = None,
    when_busy: str | None = None,
) -> QueueChanged:
    """The waiting message says something else, or waits in another way.

    With `interrupt` it is the next one, and the running turn is told to stop. Raises
    SessionNotFound, MessageInvalid, Unsupported.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        session_id, waiting = _lock_queued(user_id, turn_id)
        row = waiting.values_list("content", "edit_of").first()
        if content is not None and (row is None or row[0] is None):
            raise MessageInvalid(say("A turn that is tried again has no words of its own to edit."))
        changes: dict[str, Any] = {} if content is None else {"content": content}
        stopping = None
        if when_busy is not None:
            check_change(when_busy, branches=row is None or row[0] is None or row[1] is not None)
            head = head_priority(session_id) if when_busy == "interrupt" else 0
            changes |= {"when_busy": when_busy, "priority": head}
        if when_busy == "interrupt":
            stopping = request_stop(session_id)
        waiting.update(**changes)
        return QueueChanged(read_queue(session_id), log_queue(session_id), stopping)


def remove_queued(*, user_id: int, turn_id: UUID) -> QueueChanged:
    """The waiting message does not run. Raises SessionNotFound, MessageInvalid."""
    with transaction.atomic(using=db.alias(), savepoint=False):
        session_id, waiting = _lock_queued(user_id, turn_id)
        changed = waiting.update(state="stopped", finished_at=timezone.now(), finish="removed")
        count_ended("stopped", changed)
        return QueueChanged(read_queue(session_id), log_queue(session_id))


def _lock_queued(user_id: int, turn_id: UUID) -> tuple[UUID, QuerySet[Turn]]:
    """Locks the session of a turn of this person that waits."""
    session_id = _lock_own(user_id, None, turn_id)
    waiting = Turn.objects.filter(WAITING, pk=turn_id, author_id=user_id)
    if not waiting.exists():
        raise MessageInvalid(say("This message no longer waits: it was taken up or removed."))
    return session_id, waiting


def log_queue(session_id: UUID) -> LoggedEvents:
    """Within the caller's transaction: the log says what the queue is now."""
    queue = read_queue(session_id)
    return log_event(session_id, events.custom("queue", {"queue": queue}))


def log_event(session_id: UUID, event: bytes) -> LoggedEvents:
    """Within the caller's transaction: one more event of the session, of no turn."""
    return log_events(session_id, event)


def log_events(session_id: UUID, *new: bytes) -> LoggedEvents:
    """Within the caller's transaction: the next events of the session, of no turn."""
    seq = db.rows(
        f"UPDATE {_SESSION} SET event_seq = event_seq + %s WHERE id = %s RETURNING event_seq",
        [len(new), db.db_uuid(session_id)],
    )[0][0]
    return insert_events(session_id, None, 0, seq, new)


def _lock_own(user_id: int, session_id: UUID | None, turn_id: UUID | None) -> UUID:
    """Locks the session of a turn (or the given one), if it is the user's."""
    if turn_id is not None:
        turns = Turn.objects.filter(pk=turn_id)
        found = turns.values_list("session_id", flat=True).first()
        if found is None or session_id not in (None, found):
            raise SessionNotFound
        session_id = found
    assert session_id is not None
    own = db.rows(
        f"SELECT owner_id FROM {_SESSION} WHERE id = %s AND deleted_at IS NULL{db.lock_sql()}",
        [db.db_uuid(session_id)],
    )
    if not own or own[0][0] != user_id:
        raise SessionNotFound
    return session_id
