"""Edit, retry and switch: which rows become another branch."""

from uuid import UUID

from django.db import transaction

from gateway_app import events
from gateway_app.event_store import LoggedEvents
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.services.queue import log_event
from sessions_app import database as db
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.models import Message
from sessions_app.sentences import say
from sessions_app.services import select_branch


def check_branch(session_id: UUID, inbound: Inbound) -> None:
    """The message or turn can be branched at. Raises MessageInvalid, SessionNotFound."""
    if inbound.edit_of is not None:
        if branch_position(session_id, inbound.edit_of, None) is None:
            _refuse_unknown(session_id, inbound.edit_of)
            raise MessageInvalid(say("Only a message of yours on this branch can be edited."))
        return
    assert inbound.retry_of is not None
    turn = Turn.objects.filter(pk=inbound.retry_of, session_id=session_id).first()
    if turn is None:
        raise SessionNotFound(say("This turn does not exist."))
    if turn.block is None:
        raise MessageInvalid(say("This turn cannot be tried again: it never ran here."))


def branch_position(session_id: UUID, edit_of: UUID | None, retry_of: UUID | None) -> int | None:
    """The position from which an edit or a retry replaces what stands; None: there is nothing."""
    rows = Message.objects.filter(session_id=session_id, state="active")
    if edit_of is not None:
        rows = rows.filter(pk=edit_of, kind="user")
    else:
        rows = rows.filter(turn_id=retry_of).exclude(kind="user").order_by("position")
    return rows.values_list("position", flat=True).first()


def active_from(session_id: UUID, position: int) -> list[UUID]:
    """Active rows from a position on, oldest first."""
    rows = Message.objects.filter(
        session_id=session_id, state="active", position__gte=position
    ).order_by("position")
    return list(rows.values_list("pk", flat=True))


def switch_branch(*, session_id: UUID, message_id: UUID) -> tuple[int, LoggedEvents]:
    """The branch with the message is the active one, and the log says so; the revision after it."""
    _refuse_unknown(session_id, message_id)
    with transaction.atomic(using=db.alias(), savepoint=False):
        revision, position = select_branch(session_id=session_id, message_id=message_id)
        return revision, log_event(session_id, events.rewritten(position, revision))


def _refuse_unknown(session_id: UUID, message_id: UUID) -> None:
    """Raises SessionNotFound for a message of no session, or of another one."""
    if not Message.objects.filter(pk=message_id, session_id=session_id).exists():
        raise SessionNotFound(say("This message does not exist."))
