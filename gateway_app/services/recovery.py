"""Turns whose process is gone: close the dead run in the log, then run again or end the turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from gateway_app import events
from gateway_app.config import gateway_config
from gateway_app.event_store import LoggedEvents, insert_events
from gateway_app.models import Turn
from gateway_app.services.dead_runs import (
    LOST,
    DeadRun,
    closing_events,
    closing_rows,
    read_dead,
)
from gateway_app.services.starting import RunLease
from gateway_app.shapes import new_message_shape
from sessions_app import database as db
from sessions_app.models import BLOCK, Message, Session
from sessions_app.transcript import NewMessage, TranscriptWrite, read_revision, retry_lost_race

_SESSION: Final = Session._meta.db_table
_TURN: Final = Turn._meta.db_table
_MESSAGE: Final = Message._meta.db_table
_OPEN: Final = "t.state IN ('queued', 'running')"
"""The words of the partial index `turn_open`, without which SQLite would not use it."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of an orphaned turn. `run`: this process runs it again; else it has `ended`."""

    run: RunLease | None
    logged: tuple[LoggedEvents, ...]
    ended: Turn | None = None


@dataclass(frozen=True, slots=True)
class Orphan:
    session_id: UUID
    turn_id: UUID
    lease_owner: str


def find_orphans(*, asking: str = "") -> list[Orphan]:
    """Running turns whose lease ran out, by the database's clock; deleted sessions have none.

    With them those that the process `asking` holds: it knows which of them it runs.
    """
    found = db.rows(
        f"SELECT s.id, t.id, s.lease_owner FROM {_TURN} t JOIN {_SESSION} s ON s.id = t.session_id"
        f" WHERE {_OPEN} AND t.state = 'running' AND (s.lease_expires_at IS NULL"
        f" OR s.lease_expires_at < {db.now_sql()} OR s.lease_owner = %s)",
        [asking],
    )
    return [Orphan(db.to_uuid(row[0]), db.to_uuid(row[1]), row[2]) for row in found]


def find_leased() -> list[Orphan]:
    """Running turns with a lease that still holds: their process may be gone all the same."""
    found = db.rows(
        f"SELECT s.id, t.id, s.lease_owner FROM {_TURN} t JOIN {_SESSION} s ON s.id = t.session_id"
        f" WHERE {_OPEN} AND t.state = 'running' AND s.deleted_at IS NULL",
    )
    return [Orphan(db.to_uuid(row[0]), db.to_uuid(row[1]), row[2]) for row in found]


def find_startable() -> list[UUID]:
    """Free sessions in which a turn waits."""
    found = db.rows(
        f"SELECT DISTINCT t.session_id FROM {_TURN} t JOIN {_SESSION} s ON s.id = t.session_id"
        f" WHERE {_OPEN} AND t.state = 'queued' AND s.open_block = 0 AND s.deleted_at IS NULL"
        " AND s.state = 'active' LIMIT 100",
    )
    return [db.to_uuid(row[0]) for row in found]


def find_stranded() -> list[UUID]:
    """Sessions that ended while a turn waited in them."""
    found = db.rows(
        f"SELECT DISTINCT t.session_id FROM {_TURN} t JOIN {_SESSION} s ON s.id = t.session_id"
        f" WHERE {_OPEN} AND t.state = 'queued' AND s.open_block = 0 AND s.deleted_at IS NULL"
        " AND s.state = 'ended' LIMIT 100",
    )
    return [db.to_uuid(row[0]) for row in found]


def release_runs(*, turn_ids: Sequence[UUID], lease_owner: str) -> int:
    """Runs of this process that drain gave up are free for any process to take over."""
    if not turn_ids:
        return 0
    return db.execute(
        f"UPDATE {_SESSION} SET lease_expires_at = NULL WHERE lease_owner = %s AND id IN (SELECT"
        f" session_id FROM {_TURN} WHERE id IN ({', '.join(['%s'] * len(turn_ids))}))",
        [lease_owner, *map(db.db_uuid, turn_ids)],
    )


def renew_leases(*, lease_owner: str, session_ids: Sequence[UUID]) -> None:
    """This process holds the sessions for another lease."""
    db.execute(
        f"UPDATE {_SESSION} SET lease_expires_at = {db.now_sql(plus_s=gateway_config().lease_s)}"
        f" WHERE lease_owner = %s AND id IN ({', '.join(['%s'] * len(session_ids))})",
        [lease_owner, *map(db.db_uuid, session_ids)],
    )


def read_orders(turn_ids: Sequence[UUID]) -> dict[UUID, tuple[int, bool]]:
    """(run generation, stop requested) of each turn, in one statement; a deleted session's: -1."""
    found = db.rows(
        "SELECT t.id, CASE WHEN s.deleted_at IS NULL THEN s.run_generation ELSE -1 END,"
        f" t.stop_requested_at FROM {_TURN} t JOIN {_SESSION} s ON s.id = t.session_id"
        f" WHERE t.id IN ({', '.join(['%s'] * len(turn_ids))})",
        [db.db_uuid(turn_id) for turn_id in turn_ids],
    )
    return {db.to_uuid(row[0]): (row[1], row[2] is not None) for row in found}


@retry_lost_race
def recover_turn(*, orphan: Orphan, lease_owner: str, resume: bool = True) -> Recovered | None:
    """The orphan's run is closed in the log. It runs again here, or its turn is over.

    It is over when a person asked it to stop or deleted its session, when it crashed `max_runs`
    times, or when it is older than `resume_window_s`. None: another process was first.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        locked = _lock_orphan(orphan)
        if locked is None:
            return None
        turn = Turn.objects.get(pk=orphan.turn_id)
        dead = read_dead(orphan.session_id, turn.pk, turn.generation)
        return _recover(orphan, locked, turn, dead, lease_owner, resume)


def read_ended(*, turn_id: UUID, lease_owner: str) -> Turn | None:
    """The turn, if a recovery of this process ended it; one that still commits is waited for."""
    with transaction.atomic(using=db.alias(), savepoint=False):
        found = Turn.objects.select_for_update().filter(
            pk=turn_id, lease_owner=lease_owner, finished_at__isnull=False
        )
        return found.first()


def _lock_orphan(orphan: Orphan) -> dict[str, Any] | None:
    """The session, locked, if the orphan still holds it with the lease that was found dead."""
    names = (
        "revision", "incarnation", "run_generation", "open_block", "agent", "agent_version",
        "model", "prompt_hash", "next_block", "deleted_at",
    )  # fmt: skip
    found = db.rows(
        f"SELECT {', '.join(names)} FROM {_SESSION} WHERE id = %s AND lease_owner = %s"
        f" AND open_block > 0{db.lock_sql()}",
        [db.db_uuid(orphan.session_id), orphan.lease_owner],
    )
    if not found:
        return None
    still = Turn.objects.filter(pk=orphan.turn_id, state="running")
    return dict(zip(names, found[0], strict=True)) if still.exists() else None


def _recover(
    orphan: Orphan,
    locked: dict[str, Any],
    turn: Turn,
    dead: DeadRun,
    lease_owner: str,
    resume: bool,
) -> Recovered:
    stopped = turn.stop_requested_at is not None or locked["deleted_at"] is not None
    again = resume and not stopped and turn.runs < gateway_config().max_runs and not _stale(turn)
    rows = closing_rows(turn, dead, stopped=stopped, again=again)
    generation = locked["run_generation"] + 1
    ends = closing_events(dead, turn, stopped=stopped, again=again)
    starts = [events.run_started(orphan.session_id, turn.pk, generation)] if again else []
    write = TranscriptWrite(
        orphan.session_id, incarnation=locked["incarnation"], from_revision=locked["revision"]
    )
    _place(orphan.session_id, locked["open_block"], rows, turn)
    write.insert(rows)
    revision = read_revision(orphan.session_id)
    write.announce(revision)
    shown = [events.custom("message", new_message_shape(row, revision, {})) for row in rows]
    count = len(shown) + 1 + len(ends) + len(starts)
    seq = _take_over(orphan, lease_owner if again else "", again, count)
    committed = events.committed(locked["revision"], revision, [row.id for row in rows])
    first = insert_events(
        orphan.session_id, turn.pk, turn.generation, seq - len(starts), [*shown, committed, *ends]
    )
    logged = [first]
    if starts:
        logged.append(insert_events(orphan.session_id, turn.pk, generation, seq, starts))
    _update_turn(turn, stopped=stopped, again=again, generation=generation, owner=lease_owner)
    run = _next_run(locked, turn, generation, seq) if again else None
    return Recovered(run, tuple(logged), None if again else turn)


def _next_run(locked: dict[str, Any], turn: Turn, generation: int, seq: int) -> RunLease:
    """The turn's next run, in the same block."""
    config = (locked["agent"], locked["agent_version"], locked["model"], locked["prompt_hash"])
    return RunLease(
        turn.session_id, turn.pk, generation, locked["open_block"], config, turn.author_id,
        last_seq=seq,
    )  # fmt: skip


def _stale(turn: Turn) -> bool:
    """Whether nobody waits for this answer any more."""
    window = gateway_config().resume_window_s
    found = db.rows(
        f"SELECT 1 FROM {_TURN} WHERE id = %s AND started_at < {db.now_sql(plus_s=-window)}",
        [db.db_uuid(turn.pk)],
    )
    return bool(found)


def _place(session_id: UUID, block: int, rows: list[NewMessage], turn: Turn) -> None:
    highest = db.rows(
        f"SELECT max(position) FROM {_MESSAGE} WHERE session_id = %s AND position >= %s"
        " AND position < %s",
        [db.db_uuid(session_id), block * BLOCK, (block + 1) * BLOCK],
    )[0][0]
    for place, row in enumerate(rows, start=1):
        row.position = (highest or block * BLOCK) + place
        row.turn_id = turn.pk


def _take_over(orphan: Orphan, lease_owner: str, again: bool, count: int) -> int:
    """The generation rises, so the dead run can write no more; the last of `count` seqs."""
    hold = (
        f"lease_owner = %s, lease_expires_at = {db.now_sql(plus_s=gateway_config().lease_s)}"
        if again
        else "lease_owner = %s, lease_expires_at = NULL, open_block = 0"
    )
    found = db.rows(
        f"UPDATE {_SESSION} SET run_generation = run_generation + 1, event_seq = event_seq + %s,"
        f" updated_at = {db.now_sql()}, {hold} WHERE id = %s RETURNING event_seq",
        [count, lease_owner, db.db_uuid(orphan.session_id)],
    )
    return int(found[0][0])


def _update_turn(turn: Turn, *, stopped: bool, again: bool, generation: int, owner: str) -> None:
    turns = Turn.objects.filter(pk=turn.pk)
    if again:
        turns.update(generation=generation, runs=turn.runs + 1, lease_owner=owner, step_sent="")
        return
    turn.state = turn.finish = "stopped" if stopped else "interrupted"
    turn.error_code, turn.error_message = ("", "") if stopped else ("interrupted", str(LOST))
    turns.update(
        lease_owner=owner,
        state=turn.state,
        finish=turn.finish,
        finished_at=Now(),
        step_sent="",
        error_code=turn.error_code,
        error_message=turn.error_message,
    )
