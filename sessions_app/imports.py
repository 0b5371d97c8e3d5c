"""A session that comes from elsewhere, row by row, and is nobody's before its last row.

It is written in batches, so that other writers get their turn. Until `finish_import` it counts as
one whose restore ran out, so no door leads to it; if the import breaks off, it is purged.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from sessions_app import database as db
from sessions_app.models import Message, Session
from sessions_app.services import RESTORE_DAYS, tell_listed

_PATIENCE: Final = timedelta(hours=1)
"""An import that takes longer than this may be purged under its hands."""


def begin_import(
    *,
    key: str,
    owner_id: int,
    agent: str,
    title: str,
    model: str,
    pinned: bool,
    archived: bool,
    created_at: datetime,
) -> UUID:
    """An empty session that no door leads to; its id."""
    session = Session.objects.create(
        key=key, owner_id=owner_id, agent=agent, title=title, model=model, pinned=pinned,
        archived=archived, created_at=created_at,
        deleted_at=timezone.now() - timedelta(days=RESTORE_DAYS) + _PATIENCE,
    )  # fmt: skip
    return session.pk


def add_imported(rows: Sequence[Message]) -> None:
    """The rows stand in their session, as they are: ids, positions, states and parents."""
    Message.objects.bulk_create(rows)


def finish_import(session_id: UUID) -> int:
    """The session is its owner's, whole; its revision."""
    with transaction.atomic(using=db.alias(), savepoint=False):
        Session.objects.filter(pk=session_id).update(deleted_at=None, updated_at=timezone.now())
        tell_listed(session_id)
        return Session.objects.values_list("revision", flat=True).get(pk=session_id)


def drop_import(session_id: UUID) -> None:
    """What was written of an import that cannot be finished is gone."""
    Session.objects.filter(pk=session_id, deleted_at__isnull=False).delete()
