"""A person's changes to their own sessions. Ownership is checked by `own_session`, once."""

import hashlib
import json
import secrets
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction

from gateway_app import events
from gateway_app.errors import IdempotencyMismatch
from gateway_app.event_store import LoggedEvents
from gateway_app.models import ReadMark
from gateway_app.selectors.sessions import own_listed, own_session
from gateway_app.services.agents import agent_slug, checked_model
from gateway_app.services.prompts import freeze_prompt
from gateway_app.services.queue import log_event
from gateway_app.shapes import Shape
from sessions_app import database as db
from sessions_app import services as transcripts
from sessions_app.keys import web_key
from sessions_app.models import Session


def create_web_session(
    *, user_id: int, create_id: str | None, agent: str | None = None, title: str = ""
) -> tuple[Session, bool]:
    """A new web conversation, or the one that `create_id` made before; and whether it was made.

    Raises IdempotencyMismatch where that one was asked for with another agent or title.
    """
    create_id = create_id or secrets.token_hex(16)
    create_hash = hashlib.sha256(json.dumps([agent, title]).encode()).hexdigest()
    if earlier := _made_before(user_id, create_id, create_hash):
        return earlier, False
    slug = agent_slug(agent)
    try:
        made = transcripts.create_session(
            key=web_key(slug, user_id, uuid4()),
            owner_id=user_id,
            agent=slug,
            title=clean_title(title),
            create_id=create_id,
            create_hash=create_hash,
        )
    except IntegrityError:  # the same command, at the same moment
        if earlier := _made_before(user_id, create_id, create_hash):
            return earlier, False
        raise
    return made, True


def _made_before(user_id: int, create_id: str, create_hash: str) -> Session | None:
    made = Session.objects.filter(owner_id=user_id, create_id=create_id).first()
    if made is not None and made.create_hash not in (None, create_hash):
        raise IdempotencyMismatch
    return made


def clean_title(title: str) -> str:
    """The title on one line, without what cannot be shown."""
    return " ".join("".join(c if c.isprintable() else " " for c in title).split())[:200]


def change_session(
    *,
    user_id: int,
    session_id: UUID,
    title: str | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    agent: str | None = None,
    model: str | None = None,
) -> tuple[Shape, tuple[LoggedEvents, ...]]:
    """The session with the changes. A new agent or model makes the next request a rebuild."""
    with transaction.atomic(using=db.alias(), savepoint=False):
        session = own_session(user_id, session_id)
        fields: dict[str, Any] = {}
        if title is not None:
            fields["title"] = clean_title(title)
        if pinned is not None:
            fields["pinned"] = pinned
        if archived is not None:
            fields["archived"] = archived
        if agent is not None or model is not None:
            fields |= _configure(session, agent, model)
        transcripts.update_session(session_id=session_id, **fields)
        logged: tuple[LoggedEvents, ...] = ()
        if title is not None:
            logged = (log_event(session_id, events.custom("title", {"title": fields["title"]})),)
        _, shape = own_listed(user_id, session_id)
    return shape, logged


def _configure(session: Session, agent: str | None, model: str | None) -> dict[str, Any]:
    """The columns of another agent (its current version) or model; the key stays."""
    slug = agent_slug(agent) if agent else session.agent
    chosen = session.model if model is None else checked_model(model)
    fields: dict[str, Any] = {"agent": slug, "model": chosen}
    if session.prompt_hash and agent:
        config = freeze_prompt((slug, 0, chosen, "")).config
        fields |= {"agent_version": config[1], "prompt_hash": config[3]}
    return fields


def delete_own_session(*, user_id: int, session_id: UUID) -> LoggedEvents:
    """The user's session is gone from every door, restorable for a while.

    Its last event makes whoever watches it read it again, and find it gone.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        session = own_session(user_id, session_id)
        logged = log_event(session_id, events.rewritten(0, session.revision))
        transcripts.delete_session(session_id=session_id)
    return logged


def restore_own_session(*, user_id: int, session_id: UUID) -> Shape:
    """The user's deleted session is back."""
    transcripts.restore_session(session_id=session_id, owner_id=user_id)
    return own_listed(user_id, session_id)[1]


def mark_seen(*, user_id: int, session_id: UUID, revision: int) -> None:
    """The user has seen the session as it stood at `revision`; never less than before.

    Not a change of the session: neither its clock nor its time moves.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        session = own_session(user_id, session_id)
        table = ReadMark._meta.db_table
        rose = db.execute(
            f"INSERT INTO {table} (user_id, session_id, revision) VALUES (%s, %s, %s)"
            " ON CONFLICT (user_id, session_id) DO UPDATE SET revision = excluded.revision"
            f" WHERE {table}.revision < excluded.revision",
            [user_id, db.db_uuid(session_id), min(revision, session.revision)],
        )
        if rose:
            transcripts.tell_listed(session_id)
