"""Turns that wait in a session that has ended: nobody will run them, so they end, visibly."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from gateway_app import events
from gateway_app.event_store import LoggedEvents
from gateway_app.models import Turn
from gateway_app.selectors.queue import WAITING
from gateway_app.services.dead_runs import notice
from gateway_app.services.ended import count_ended
from gateway_app.services.queue import log_events
from gateway_app.shapes import new_message_shape
from sessions_app import database as db
from sessions_app.fields import dump_json
from sessions_app.models import BLOCK, Message, Session
from sessions_app.sentences import say
from sessions_app.transcript import NewMessage, TranscriptWrite, read_revision, retry_lost_race

ENDED: Final = say("This conversation ended before this message was answered.")


@retry_lost_race
def end_stranded(*, session_id: UUID) -> LoggedEvents | None:
    """Each waiting turn is stopped: its message is a row, with a notice. None: there is none."""
    with transaction.atomic(using=db.alias(), savepoint=False):
        found = db.rows(
            f"SELECT revision, incarnation, next_block FROM {Session._meta.db_table} WHERE id = %s"
            f" AND state = 'ended' AND deleted_at IS NULL AND open_block = 0{db.lock_sql()}",
            [db.db_uuid(session_id)],
        )
        waiting = _waiting(session_id)
        if not found or not waiting:
            return None
        revision, incarnation, next_block = found[0]
        write = TranscriptWrite(session_id, incarnation=incarnation, from_revision=revision)
        rows = _rows(session_id, waiting, next_block)
        write.insert(rows)
        changed = Turn.objects.filter(pk__in=[turn["pk"] for turn in waiting]).update(
            state="stopped", finish="ended", finished_at=Now()
        )
        count_ended("stopped", changed)
        write.announce(read_revision(session_id))
        names = {turn["author_id"]: turn["author__username"] or "" for turn in waiting}
        shown = [
            events.custom("message", new_message_shape(r, write.revision, names)) for r in rows
        ]
        committed = events.committed(revision, write.revision, [row.id for row in rows])
        queue = events.custom("queue", {"queue": []})
        return log_events(session_id, *shown, committed, queue)


def _waiting(session_id: UUID) -> list[Any]:
    """The turns in the order in which they would have run."""
    turns = Turn.objects.filter(WAITING, session_id=session_id).order_by(
        "-priority", "accepted_seq"
    )
    return list(turns.values("pk", "content", "author_id", "author__username", "client_message_id"))


def _rows(session_id: UUID, waiting: Sequence[Any], next_block: int) -> list[NewMessage]:
    """A block for each turn: its message, unless that has a row already, and the notice."""
    ids = [turn["pk"] for turn in waiting]
    written = set(
        Message.objects.filter(session_id=session_id, turn_id__in=ids, kind="user").values_list(
            "turn_id", flat=True
        )
    )
    rows = []
    for block, turn in enumerate(waiting, start=next_block):
        where = {"position": block * BLOCK + 1, "turn_id": turn["pk"]}
        if turn["content"] is not None and turn["pk"] not in written:
            rows.append(
                NewMessage(
                    kind="user",
                    parts=dump_json(turn["content"]),
                    author_id=turn["author_id"],
                    client_message_id=turn["client_message_id"],
                    **where,
                )
            )
        where["position"] += 1
        rows.append(notice(ENDED, "ended", **where))
    return rows
