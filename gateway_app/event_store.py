"""The event log in the database: append, group flush, read, fold. Sync; knows no loop."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db import transaction

from gateway_app.models import Event, Turn
from sessions_app import database as db
from sessions_app.models import Session

_EVENT: Final = Event._meta.db_table
_SESSION: Final = Session._meta.db_table
_OF_TURN: Final = (
    "session_id = %s AND turn_id = %s AND seq >="
    f" (SELECT t.accepted_seq FROM {Turn._meta.db_table} t WHERE t.id = %s)"
)
"""SQL: the log of one turn. Without its last words the session's whole log would be read."""
_RAW_ROWS: Final = msgspec.json.Decoder(list[tuple[int, msgspec.Raw]])


@dataclass(frozen=True, slots=True)
class LoggedEvents:
    """Consecutive events of one session, in the log: what subscribers may see from now on."""

    session_id: UUID
    turn_id: UUID | None
    first_seq: int
    events: tuple[bytes, ...]

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self.events) - 1


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    seq: int
    turn_id: UUID | None
    generation: int
    event: bytes


@dataclass(frozen=True, slots=True)
class RunBatch:
    """What one run has to write in one flush."""

    session_id: UUID
    turn_id: UUID
    generation: int
    events: tuple[bytes, ...]


def _pairs(events: Iterable[tuple[int, bytes]]) -> str:
    """The body of a row of the log."""
    return f"[{','.join(f'[{seq},{event.decode()}]' for seq, event in events)}]"


def insert_events(
    session_id: UUID,
    turn_id: UUID | None,
    generation: int,
    last_seq: int,
    events: Sequence[bytes],
) -> LoggedEvents:
    """The events stand in the log up to `last_seq`, which the caller took from the session."""
    first_seq = last_seq - len(events) + 1
    logged = LoggedEvents(session_id, turn_id, first_seq, tuple(events))
    _insert_rows([(logged, generation)])
    return logged


def _insert_rows(batches: Sequence[tuple[LoggedEvents, int]]) -> None:
    rows = [
        (
            db.db_uuid(logged.session_id), logged.last_seq,
            logged.turn_id and db.db_uuid(logged.turn_id), generation,
            _pairs(enumerate(logged.events, logged.first_seq)),
        )
        for logged, generation in batches
    ]  # fmt: skip
    columns = f"INSERT INTO {_EVENT} (session_id, seq, turn_id, generation, body) VALUES "
    with db.connection().cursor() as cursor:
        if db.is_sqlite() and len(rows) > 1:
            cursor.executemany(columns + "(%s, %s, %s, %s, %s)", rows)
            return
        tuples = ", ".join(["(%s, %s, %s, %s, %s)"] * len(rows))
        cursor.execute(columns + tuples, [value for row in rows for value in row])


@transaction.atomic(savepoint=False)
def flush_runs(
    batches: Sequence[RunBatch], *, wait: bool = False
) -> tuple[list[LoggedEvents], list[UUID]]:
    """Commits what several runs have, in one transaction; what was logged, and who was fenced.

    A run that is in neither list found its session locked by another writer (PostgreSQL): it comes
    again with the next tick, or with `wait`. One statement is fence, seq and lock at once.
    """
    wanted = {batch.session_id: batch for batch in batches}
    if not db.is_sqlite() and not wait:
        free = db.rows(
            f"SELECT id FROM {_SESSION} WHERE id IN ({', '.join(['%s'] * len(wanted))})"
            " ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
            list(wanted),
        )
        wanted = {row[0]: wanted[row[0]] for row in free}
    if not wanted:
        return [], []
    seqs = _take_seqs(wanted.values())
    logged = [
        LoggedEvents(
            batch.session_id,
            batch.turn_id,
            seqs[batch.session_id] - len(batch.events) + 1,
            batch.events,
        )
        for batch in wanted.values()
        if batch.session_id in seqs
    ]
    if logged:
        _insert_rows([(one, wanted[one.session_id].generation) for one in logged])
    return logged, [session_id for session_id in wanted if session_id not in seqs]


@transaction.atomic(savepoint=False)
def find_landed(
    session_id: UUID, turn_id: UUID, generation: int, *, after: int
) -> LoggedEvents | None:
    """What the run logged behind the seq `after`, by a commit that was never confirmed.

    The lock is what that transaction held: with it, it has either committed or never will.
    """
    db.rows(f"SELECT id FROM {_SESSION} WHERE id = %s{db.lock_sql()}", [db.db_uuid(session_id)])
    rows = db.rows(
        f"SELECT body FROM {_EVENT} WHERE session_id = %s AND seq > %s AND turn_id = %s"
        " AND generation = %s ORDER BY seq",
        [db.db_uuid(session_id), after, db.db_uuid(turn_id), generation],
    )
    if not rows:
        return None
    events = _RAW_ROWS.decode(rows[0][0])
    return LoggedEvents(
        session_id, turn_id, events[0][0], tuple(bytes(event) for _, event in events)
    )


def _take_seqs(batches: Iterable[RunBatch]) -> dict[UUID, int]:
    """The last seq of each run that still holds its session."""
    rows = [
        (db.db_uuid(batch.session_id), batch.generation, len(batch.events)) for batch in batches
    ]
    one = "(%s, %s, %s)" if db.is_sqlite() else "(%s::uuid, %s::bigint, %s::bigint)"
    values = f"(VALUES {', '.join([one] * len(rows))}) AS batch"
    source = f"(SELECT column1 AS id, column2 AS generation, column3 AS added FROM {values}) AS run"
    found = db.rows(
        f"UPDATE {_SESSION} SET event_seq = event_seq + run.added FROM {source}"
        f" WHERE {_SESSION}.id = run.id AND {_SESSION}.run_generation = run.generation"
        f" RETURNING {_SESSION}.id, {_SESSION}.event_seq",
        [value for row in rows for value in row],
    )
    return {db.to_uuid(session_id): seq for session_id, seq in found}


def read_events(session_id: UUID, *, from_seq: int, limit_rows: int) -> list[LoggedEvent]:
    """Events with `seq >= from_seq`, in order: those of at most `limit_rows` rows of the log."""
    rows = db.rows(
        f"SELECT turn_id, generation, body FROM {_EVENT} WHERE session_id = %s AND seq >= %s"
        " ORDER BY seq LIMIT %s",
        [db.db_uuid(session_id), from_seq, limit_rows],
    )
    return [
        LoggedEvent(seq, turn_id and db.to_uuid(turn_id), generation, bytes(event))
        for turn_id, generation, body in rows
        for seq, event in _RAW_ROWS.decode(body)
        if seq >= from_seq
    ]


def read_last_seqs(session_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The log's last seq of each session, in one statement."""
    if not session_ids:
        return {}
    found = db.rows(
        f"SELECT id, event_seq FROM {_SESSION}"
        f" WHERE id IN ({', '.join(['%s'] * len(session_ids))})",
        [db.db_uuid(session_id) for session_id in session_ids],
    )
    return {db.to_uuid(session_id): seq for session_id, seq in found}


def _of_turn(session_id: UUID, turn_id: UUID) -> list[object]:
    """What _OF_TURN asks for."""
    return [db.db_uuid(session_id), db.db_uuid(turn_id), db.db_uuid(turn_id)]


def read_run_events(session_id: UUID, turn_id: UUID, generation: int) -> list[LoggedEvent]:
    """Every event of one run so far, in order."""
    rows = db.rows(
        f"SELECT body FROM {_EVENT} WHERE {_OF_TURN} AND generation = %s ORDER BY seq",
        [*_of_turn(session_id, turn_id), generation],
    )
    return [
        LoggedEvent(seq, turn_id, generation, bytes(event))
        for (body,) in rows
        for seq, event in _RAW_ROWS.decode(body)
    ]


_CONTENT: Final = {
    "TEXT_MESSAGE_CONTENT": "messageId",
    "REASONING_MESSAGE_CONTENT": "messageId",
    "TOOL_CALL_ARGS": "toolCallId",
}
_CONTENT_END: Final = {
    "TEXT_MESSAGE_END": ("TEXT_MESSAGE_CONTENT", "messageId"),
    "REASONING_MESSAGE_END": ("REASONING_MESSAGE_CONTENT", "messageId"),
    "TOOL_CALL_END": ("TOOL_CALL_ARGS", "toolCallId"),
}


@dataclass(slots=True)
class _Content:
    """The deltas of one message so far, and the last event that held one."""

    place: int
    last: LoggedEvent
    event: dict[str, Any]
    deltas: list[str]

    def joined(self) -> LoggedEvent:
        whole = msgspec.json.encode(self.event | {"delta": "".join(self.deltas)})
        return LoggedEvent(self.last.seq, self.last.turn_id, self.last.generation, whole)


def fold_events(events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """The same events with every message's deltas as one, at the seq of its last delta.

    A message that is closed and opened again has one for each time.
    """
    folded: list[LoggedEvent | _Content | None] = []
    open_content: dict[tuple[str, str], _Content] = {}
    for logged in events:
        event = msgspec.json.decode(logged.event)
        field = _CONTENT.get(event["type"])
        if field is None:
            if end := _CONTENT_END.get(event["type"]):
                open_content.pop((end[0], event[end[1]]), None)
            folded.append(logged)
            continue
        key = (event["type"], event[field])
        content = _Content(len(folded), logged, event, [])
        if earlier := open_content.get(key):
            folded[earlier.place] = None
            content.deltas = earlier.deltas
        content.deltas.append(event["delta"])
        open_content[key] = content
        folded.append(content)
    return [one.joined() if isinstance(one, _Content) else one for one in folded if one is not None]


@transaction.atomic(savepoint=False)
def fold_run(session_id: UUID, turn_id: UUID) -> int:
    """Folds the log of a turn that has ended; how many rows it saved.

    Rows of a session never overlap: what the run logged between two rows of others stays there.
    """
    rows = db.rows(
        f"SELECT seq, generation, body FROM {_EVENT} WHERE {_OF_TURN}"
        f" AND NOT folded ORDER BY seq{db.lock_sql()}",
        _of_turn(session_id, turn_id),
    )
    if not rows:
        return 0
    others = db.rows(
        f"SELECT seq FROM {_EVENT} WHERE session_id = %s AND seq BETWEEN %s AND %s"
        " AND (turn_id IS NULL OR turn_id <> %s) ORDER BY seq",
        [db.db_uuid(session_id), rows[0][0], rows[-1][0], db.db_uuid(turn_id)],
    )
    events = [
        LoggedEvent(seq, turn_id, generation, bytes(event))
        for _, generation, body in rows
        for seq, event in _RAW_ROWS.decode(body)
    ]
    segments = _segments(fold_events(events), [seq for (seq,) in others])
    db.execute(
        f"DELETE FROM {_EVENT} WHERE {_OF_TURN} AND NOT folded",
        _of_turn(session_id, turn_id),
    )
    folded = [
        Event(
            session_id=session_id,
            seq=segment[-1].seq,
            turn_id=turn_id,
            generation=generation,
            folded=True,
            body=_pairs((logged.seq, logged.event) for logged in segment),
        )
        for (_, generation), segment in segments.items()
    ]
    Event.objects.bulk_create(folded)
    return len(rows) - len(folded)


def _segments(
    events: Sequence[LoggedEvent], others: Sequence[int]
) -> dict[tuple[int, int], list[LoggedEvent]]:
    """The events of each run between two rows of others, whose seqs are `others`."""
    segments: dict[tuple[int, int], list[LoggedEvent]] = {}
    for logged in events:
        place = bisect_left(others, logged.seq)
        segments.setdefault((place, logged.generation), []).append(logged)
    return segments
