"""Messages that steer a run: rows of its block, written by the run after a tool step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django.utils import timezone

from gateway_app import events
from gateway_app.models import Turn
from gateway_app.selectors.queue import WAITING, read_queue
from gateway_app.services.ended import count_ended
from gateway_app.services.starting import RunLease
from sessions_app import database as db
from sessions_app.fields import dump_json
from sessions_app.models import Session
from sessions_app.transcript import NewMessage, TranscriptWrite

_SESSION: Final = Session._meta.db_table


@dataclass(frozen=True, slots=True)
class Steered:
    """What was absorbed. `count` more seqs were taken for it, `revision` is the session's now."""

    rows: Sequence[NewMessage] = ()
    names: dict[int, str] = field(default_factory=dict)
    queue_events: Sequence[bytes] = ()
    revision: int | None = None

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.queue_events)


def absorb_steers(run: RunLease, transcript: TranscriptWrite, position: int) -> Steered:
    """Within the run's transaction: the steering messages that wait stand behind `position`.

    Their turns are absorbed. Whatever steers a run that takes no further step waits on, and is a
    turn like any other once the session is free.
    """
    waiting = Turn.objects.filter(WAITING, session_id=run.session_id, state="queued")
    found = list(
        waiting.filter(when_busy="steer")
        .order_by("-priority", "accepted_seq")
        .values_list("pk", "content", "author_id", "author__username", "client_message_id")
    )
    if not found:
        return Steered()
    rows = [
        NewMessage(
            kind="user",
            parts=dump_json(content),
            position=position + place,
            turn_id=run.turn_id,
            author_id=author_id,
            client_message_id=client_message_id,
        )
        for place, (_, content, author_id, _, client_message_id) in enumerate(found, start=1)
    ]
    transcript.insert(rows)
    changed = Turn.objects.filter(pk__in=[turn[0] for turn in found]).update(
        state="absorbed", finished_at=timezone.now(), finish="absorbed", block=run.block
    )
    count_ended("absorbed", changed)
    queue = events.custom("queue", {"queue": read_queue(run.session_id)})
    names = {turn[2]: turn[3] for turn in found if turn[2] is not None}
    return Steered(rows, names, [queue], _take_seqs(run, len(rows) + 1))


def _take_seqs(run: RunLease, count: int) -> int:
    """`count` more seqs behind those that the transaction has taken; the revision now."""
    return int(
        db.rows(
            f"UPDATE {_SESSION} SET event_seq = event_seq + %s WHERE id = %s RETURNING revision",
            [count, db.db_uuid(run.session_id)],
        )[0][0]
    )
