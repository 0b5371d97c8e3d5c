"""Stop, and edits of the queue, by the people of a session."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway_app import events
from gateway_app.event_store import LoggedEvents, insert_events
from gateway_app.models import Turn
from gateway_app.selectors.queue import OPEN, WAITING, read_queue
from gateway_app.shapes import Shape
from sessions_app import database as db
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.models import Session

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
        turns = Turn.objects.filter(session_id=session_id)
        mine = turns.filter(pk=turn_id) if turn_id else turns
        running = mine.filter(OPEN).values_list("pk", "generation").first()
        if running:
            turns.filter(pk=running[0], stop_requested_at=None).update(
                stop_requested_at=timezone.now()
            )
        waiting = turns.filter(WAITING)
        gone = waiting if clear_queue else waiting.filter(pk__in=[turn_id] if turn_id else [])
        changed = gone.update(state="stopped", finished_at=timezone.now(), finish="stopped")
        logged = (log_queue(session_id),) if changed else ()
    return Stopped(session_id, running, logged)


def edit_queued(
    *, user_id: int, turn_id: UUID, content: list[dict[str, Any]]
) -> tuple[list[Shape], LoggedEvents]:
    """The waiting message says something else. Raises SessionNotFound, MessageInvalid."""
    return _change_queued(user_id, turn_id, lambda waiting: waiting.update(content=content))


def remove_queued(*, user_id: int, turn_id: UUID) -> tuple[list[Shape], LoggedEvents]:
    """The waiting message does not run. Raises SessionNotFound, MessageInvalid."""
    return _change_queued(
        user_id,
        turn_id,
        lambda waiting: waiting.update(
            state="stopped", finished_at=timezone.now(), finish="removed"
        ),
    )


def _change_queued(
    user_id: int, turn_id: UUID, change: Callable[[Any], int]
) -> tuple[list[Shape], LoggedEvents]:
    with transaction.atomic(using=db.alias(), savepoint=False):
        session_id = _lock_own(user_id, None, turn_id)
        waiting = Turn.objects.filter(WAITING, pk=turn_id, author_id=user_id)
        if not change(waiting):
            raise MessageInvalid("This message no longer waits: it was taken up or removed.")
        logged = log_queue(session_id)
        queue = read_queue(session_id)
    return queue, logged


def log_queue(session_id: UUID) -> LoggedEvents:
    """Within the caller's transaction: the log says what the queue is now."""
    queue = read_queue(session_id)
    return log_event(session_id, events.custom("queue", {"queue": queue}))


def log_event(session_id: UUID, event: bytes) -> LoggedEvents:
    """Within the caller's transaction: one more event of the session, of no turn."""
    seq = db.rows(
        f"UPDATE {_SESSION} SET event_seq = event_seq + 1 WHERE id = %s RETURNING event_seq",
        [db.db_uuid(session_id)],
    )[0][0]
    return insert_events(session_id, None, 0, seq, [event])


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
