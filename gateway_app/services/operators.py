"""An operator's orders about other people's sessions.

Who may give them is the caller's to check: the admin does, by Django's permissions. The log's news
reach clients by each process's poll.
"""

from uuid import UUID

from django.db import transaction

from gateway_app import events
from gateway_app.models import Turn
from gateway_app.services.queue import Stopped, log_event, stop_locked
from sessions_app import database as db
from sessions_app import services as transcripts
from sessions_app.errors import SessionNotFound
from sessions_app.models import Session


def stop_any_turn(*, turn_id: UUID) -> Stopped:
    """A running turn is told to stop; a waiting one leaves the queue. Idempotent.

    Raises SessionNotFound.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        session_id = Turn.objects.filter(pk=turn_id).values_list("session_id", flat=True).first()
        if session_id is None:
            raise SessionNotFound("This turn does not exist.")
        _lock_live(session_id)
        return stop_locked(session_id, turn_id)


def delete_any_session(*, session_id: UUID) -> None:
    """The session is gone from every door, restorable for a while; whoever watches it learns of it.

    Raises SessionNotFound.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        revision = _lock_live(session_id)
        log_event(session_id, events.rewritten(0, revision))
        transcripts.delete_session(session_id=session_id)


def restore_any_session(*, session_id: UUID) -> None:
    """The deleted session is back with its owner. Raises SessionNotFound, MessageInvalid."""
    deleted = Session.objects.filter(pk=session_id, deleted_at__isnull=False)
    found = deleted.values_list("owner_id").first()
    if found is None:
        raise SessionNotFound
    transcripts.restore_session(session_id=session_id, owner_id=found[0])


def _lock_live(session_id: UUID) -> int:
    """Locks a session that was not deleted; its revision."""
    found = db.rows(
        f"SELECT revision FROM {Session._meta.db_table}"
        f" WHERE id = %s AND deleted_at IS NULL{db.lock_sql()}",
        [db.db_uuid(session_id)],
    )
    if not found:
        raise SessionNotFound
    return int(found[0][0])
