"""An operator's orders about other people's sessions.

Who may give them is the caller's to check: the admin does, by Django's permissions. What was logged
reaches clients after the commit, by `orders`.
"""

import hashlib
from uuid import UUID

from django.db import transaction

from gateway_app import events
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.orders import Order, give
from gateway_app.selectors.board import retryable_turns
from gateway_app.services.queue import Stopped, log_event, stop_locked
from gateway_app.services.turns import Accepted, accept_turn
from sessions_app import database as db
from sessions_app import services as transcripts
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.models import Session
from sessions_app.sentences import say


def stop_any_turn(*, turn_id: UUID) -> Stopped:
    """A running turn is told to stop; a waiting one leaves the queue. Idempotent.

    Raises SessionNotFound.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        session_id = Turn.objects.filter(pk=turn_id).values_list("session_id", flat=True).first()
        if session_id is None:
            raise SessionNotFound(say("This turn does not exist."))
        _lock_live(session_id)
        stopped = stop_locked(session_id, turn_id)
        give(Order(stopped.logged, stop=stopped.running))
        return stopped


def retry_any_turn(*, turn_id: UUID) -> Accepted:
    """The session's last turn, which failed, waits to be tried again in its owner's name; once.

    Whichever process runs turns first starts it. Raises SessionNotFound, SessionBusy,
    MessageInvalid.
    """
    turn = retryable_turns().filter(pk=turn_id).select_related("session__owner").first()
    if turn is None or turn.session.owner is None:
        raise MessageInvalid(say("Only the last turn of a conversation can be tried again."))
    name = f"operator-retry:{turn_id}"
    inbound = Inbound(
        author_id=turn.session.owner.pk,
        author_name=turn.session.owner.get_username(),
        client_message_id=name,
        body_hash=hashlib.sha256(name.encode()).hexdigest(),
        content=None,
        when_busy="reject",
        retry_of=turn_id,
    )
    accepted = accept_turn(inbound=inbound, session_id=turn.session_id, lease_owner="", start=False)
    give(Order(accepted.logged, stop=accepted.stopping, work=accepted.startable))
    return accepted


def delete_any_session(*, session_id: UUID) -> None:
    """The session is gone from every door, restorable for a while; whoever watches it learns of it.

    Raises SessionNotFound.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        revision = _lock_live(session_id)
        give(Order((log_event(session_id, events.rewritten(0, revision)),)))
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
