"""What a run writes: its steps and its end. Each write is fenced by the run's generation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from gateway_app import events
from gateway_app.cached_agent import SentRecord
from gateway_app.event_store import LoggedEvents, insert_events
from gateway_app.models import Turn
from gateway_app.selectors.queue import queued_sql
from gateway_app.services.starting import LockedSession, RunLease, start_waiting
from gateway_app.services.steering import Steered, absorb_steers
from gateway_app.shapes import new_message_shape
from sessions_app import database as db
from sessions_app.errors import RunFenced
from sessions_app.models import BLOCK, Message, Session
from sessions_app.sentences import say
from sessions_app.transcript import NewMessage, TranscriptWrite, retry_lost_race

_SESSION: Final = Session._meta.db_table
_MESSAGE: Final = Message._meta.db_table
_TURN: Final = Turn._meta.db_table


@dataclass(slots=True)
class TurnRecord:
    """What a turn's row says of its run: the guard's verdicts, the last request, the outcome.

    Names are those of Turn's columns; None leaves a column alone.
    """

    verdict: str | None = None
    reason: str | None = None
    baseline: int | None = None
    revision: int | None = None
    worst_verdict: str | None = None
    worst_reason: str | None = None
    model: str | None = None
    fallback_from: str | None = None
    finish: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cache_write_tokens: int | None = None
    context_tokens: int | None = None
    cost_usd: Decimal | None = None
    ttft_ms: int | None = None
    duration_ms: int | None = None
    step_sent: str | None = None
    sent: SentRecord | None = None

    def columns(self) -> dict[str, Any]:
        values = {
            name: getattr(self, name)
            for name in self.__slots__
            if name != "sent" and getattr(self, name) is not None
        }
        if "cost_usd" in values and db.is_sqlite():
            values["cost_usd"] = str(values["cost_usd"])
        if self.sent:
            values |= {
                "sent_revision": self.sent.revision,
                "sent_rows": self.sent.rows,
                "sent_digest": self.sent.digest,
                "sent_signature": self.sent.signature,
            }
        return values


@dataclass(frozen=True, slots=True)
class RunWrite:
    """One transaction of a run. `state` set: it is the run's last one.

    `before` are events that were not logged yet, `terminal` is the run's last one.
    `lease_owner` set: the next waiting turn starts.
    """

    run: RunLease
    messages: Sequence[NewMessage] = ()
    before: Sequence[bytes] = ()
    terminal: bytes | None = None
    record: TurnRecord = field(default_factory=TurnRecord)
    state: str | None = None
    lease_owner: str | None = None
    absorb: bool = False
    """Messages that steer this run are written behind its rows."""


@dataclass(frozen=True, slots=True)
class RunWritten:
    """What a run's transaction did. `next_run`: the turn that it started."""

    revision: int
    logged: tuple[LoggedEvents, ...]
    next_run: RunLease | None = None


@retry_lost_race
def write_run(*, write: RunWrite) -> RunWritten:
    """The rows stand in the run's block, the events in the log, in one transaction.

    Raises RunFenced, with nothing written, when the run no longer holds the session.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        return _write_run(write)


def _write_run(write: RunWrite) -> RunWritten:
    run, messages = write.run, write.messages
    shown = [message for message in messages if message.kind != "session_meta"]
    count = len(write.before) + len(shown) + 1 + (write.terminal is not None)
    locked, seq, highest = _lock_run(run, count, closing=write.state is not None)
    transcript = TranscriptWrite(
        run.session_id, incarnation=locked.incarnation, from_revision=locked.revision
    )
    for place, message in enumerate(messages, start=1):
        message.position = (highest or run.block * BLOCK) + place
        message.turn_id = run.turn_id
    transcript.insert(messages)
    revision, waiting = _write_turn(write)
    steered = Steered()
    if write.absorb and waiting:
        steered = absorb_steers(run, transcript, (highest or run.block * BLOCK) + len(messages))
        seq, revision = seq + steered.count, steered.revision or revision
    transcript.announce(revision)
    rows = [*messages, *steered.rows]
    written = [
        *write.before,
        *(
            events.custom("message", new_message_shape(message, revision, steered.names))
            for message in [*shown, *steered.rows]
        ),
        events.committed(locked.revision, revision, [message.id for message in rows]),
        *steered.queue_events,
        *([write.terminal] if write.terminal is not None else []),
    ]
    logged = [insert_events(run.session_id, run.turn_id, run.generation, seq, written)]
    next_run = None
    if write.state is not None and waiting and write.lease_owner:
        locked.revision, locked.open_block = revision, 0
        if started := start_waiting(locked, write.lease_owner):
            next_run = started[0]
            logged.append(started[1])
    return RunWritten(revision, tuple(logged), next_run)


def _lock_run(run: RunLease, count: int, *, closing: bool) -> tuple[LockedSession, int, int | None]:
    """Fence, lock and `count` seqs in one statement; with the highest position in the block.

    A run whose block is closed has ended, though the news of that commit may have been lost.
    """
    close = ", lease_owner = '', lease_expires_at = NULL, open_block = 0" if closing else ""
    found = db.rows(
        f"UPDATE {_SESSION} SET event_seq = event_seq + %s, updated_at = {db.now_sql()}{close}"
        " WHERE id = %s AND run_generation = %s AND open_block = %s AND deleted_at IS NULL"
        " RETURNING revision,"
        " incarnation, next_block, title, agent, agent_version, model, prompt_hash, event_seq,"
        f" (SELECT max(position) FROM {_MESSAGE} m WHERE m.session_id = {_SESSION}.id"
        " AND m.position >= %s AND m.position < %s)",
        [
            count, db.db_uuid(run.session_id), run.generation, run.block,
            run.block * BLOCK, (run.block + 1) * BLOCK,
        ],
    )  # fmt: skip
    if not found:
        raise RunFenced(say("This run no longer holds the conversation."))
    revision, incarnation, next_block, title, agent, version, model, prompt, seq, highest = found[0]
    locked = LockedSession(
        id=run.session_id,
        revision=revision,
        incarnation=incarnation,
        next_block=next_block,
        open_block=run.block,
        run_generation=run.generation,
        title=title,
        config=(agent, version, model, prompt),
        waiting=0,
    )
    return locked, seq, highest


def _write_turn(write: RunWrite) -> tuple[int, int]:
    """The turn's row follows; (the session's revision now, how many turns wait)."""
    columns = write.record.columns()
    sets = [f"{name} = %s" for name in columns]
    params = list(columns.values())
    if write.state is not None:
        sets += ["state = %s", f"finished_at = {db.now_sql()}"]
        params.append(write.state)
    if not sets:
        sets = ["generation = generation"]
    found = db.rows(
        # not twice: a commit whose confirmation was lost is tried again, and is fenced here
        f"UPDATE {_TURN} SET {', '.join(sets)} WHERE id = %s AND generation = %s"
        " AND finished_at IS NULL"
        f" RETURNING (SELECT s.revision FROM {_SESSION} s WHERE s.id = {_TURN}.session_id),"
        f" (SELECT count(*) FROM {_TURN} w WHERE w.session_id = {_TURN}.session_id"
        f" AND {queued_sql('w')})",
        [*params, db.db_uuid(write.run.turn_id), write.run.generation],
    )
    if not found:
        raise RunFenced(say("This run no longer holds the turn."))
    return found[0][0], found[0][1]


def has_ended(run: RunLease, record: TurnRecord) -> bool:
    """Whether the run's own end is stored, and not one that somebody else gave its turn."""
    return Turn.objects.filter(
        pk=run.turn_id,
        generation=run.generation,
        finished_at__isnull=False,
        duration_ms=record.duration_ms,
    ).exists()


def keep_sent(*, run: RunLease, message_id: UUID, sent: str) -> None:
    """What the provider wants back of a message whose tools are about to run is durable, for
    whoever has to commit the step in the run's place. Raises RunFenced.
    """
    kept = db.execute(
        f"UPDATE {_TURN} SET step_sent = %s WHERE id = %s AND generation = %s"
        " AND finished_at IS NULL",
        [f"{message_id} {sent}", db.db_uuid(run.turn_id), run.generation],
    )
    if not kept:
        raise RunFenced(say("This run no longer holds the turn."))


def kept_sent(turn: Turn, message_id: UUID) -> str | None:
    """What `keep_sent` kept of this message, while the rows of its step are not written."""
    kept_id, _, sent = turn.step_sent.partition(" ")
    return sent if kept_id == str(message_id) else None


def read_sent(session_id: UUID) -> SentRecord | None:
    """The stored record of the session's last request, by any process."""
    found = db.rows(
        f"SELECT sent_revision, sent_rows, sent_digest, sent_signature FROM {_TURN}"
        " WHERE session_id = %s AND sent_revision IS NOT NULL ORDER BY generation DESC LIMIT 1",
        [db.db_uuid(session_id)],
    )
    return SentRecord(*found[0]) if found else None
