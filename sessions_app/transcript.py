"""The unit of writing: one transaction's change to one session's transcript.

A service locks the session, reads the revision (`from`), writes rows, reads the revision again
(`to`), and registers the signal for after the commit. Both readings stand under the same lock, so
what lies between them is exactly this transaction's own work.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.db import IntegrityError, OperationalError, transaction

from sessions_app import database as db
from sessions_app.errors import SessionBusy, SessionEnded, SessionNotFound
from sessions_app.models import BLOCK, Message, Session, new_id
from sessions_app.signals import TranscriptCommit, TranscriptRow, transcript_committed

P = ParamSpec("P")
R = TypeVar("R")

_SESSION = Session._meta.db_table
_MESSAGE = Message._meta.db_table
_DEADLOCK = "40P01"
_ROW_COLUMNS = "id, position, kind, state, parts, sent_parts"
_MARKS_5, _MARKS_7 = ", ".join(["%s"] * 5), ", ".join(["%s"] * 7)
_ROW_BEFORE = (
    f"SELECT id FROM {_MESSAGE} WHERE session_id = %s AND state = 'active' AND position < %s"
    " ORDER BY position DESC LIMIT 1"
)
_INSERT_COLUMNS = (
    "id, session_id, position, kind, state, parts, sent_parts, parent_id, turn_id, author_id,"
    " client_message_id, finish, created_at"
)


@dataclass(slots=True)
class NewMessage:
    """A row to insert. `parts` and `sent_parts` are JSON text.

    Without a `parent_id`, its parent is the active row before it: `hangs_on`, once it is inserted.
    """

    kind: str
    parts: str
    id: UUID = field(default_factory=new_id)
    position: int = 0
    state: str = "active"
    sent_parts: str | None = None
    parent_id: UUID | None = None
    hangs_on: UUID | None = field(default=None, init=False)
    turn_id: UUID | None = None
    author_id: int | None = None
    client_message_id: str | None = None
    finish: str | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def row(self) -> TranscriptRow:
        return TranscriptRow(
            self.id, self.position, self.kind, self.state, self.parts, self.sent_parts
        )


@dataclass(frozen=True, slots=True)
class SessionHead:
    """The locked session's columns that writers need, as they stood before their first row."""

    id: UUID
    revision: int
    incarnation: int
    next_block: int
    open_block: int


def retry_lost_race(service: Callable[P, R]) -> Callable[P, R]:
    """Runs the service again (twice at most) when it lost a race that another try wins.

    That is a deadlock that PostgreSQL resolved against it, or a raw writer who took a position
    while the service waited for the lock. Only where the service owns its transaction; inside
    another one the whole of it must be retried.
    """

    @functools.wraps(service)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(2):
            if db.connection().in_atomic_block:
                break
            try:
                return service(*args, **kwargs)
            except OperationalError as exc:
                if getattr(exc.__cause__, "sqlstate", None) != _DEADLOCK:
                    raise
            except IntegrityError as exc:
                if "position" not in str(exc):
                    raise
        return service(*args, **kwargs)

    return wrapped


class TranscriptWrite:
    """Collects one transaction's rows and announces them after the commit."""

    def __init__(self, session_id: UUID, *, incarnation: int, from_revision: int) -> None:
        self.session_id = session_id
        self.incarnation = incarnation
        self.from_revision = from_revision
        self.revision = from_revision
        self._rows: list[TranscriptRow] = []
        self._removed = False

    def insert(self, messages: Sequence[NewMessage]) -> None:
        """Inserts the rows, in one statement. Their positions must be set."""
        if not messages:
            return
        values: list[object] = []
        tuples: list[str] = []
        session = db.db_uuid(self.session_id)
        for place, message in enumerate(messages):
            assert message.position > 0
            parent, found = "%s", [message.parent_id and db.db_uuid(message.parent_id)]
            if message.parent_id is None and place == 0:
                parent, found = f"({_ROW_BEFORE})", [session, message.position]
            elif message.parent_id is None:
                found = [db.db_uuid(messages[place - 1].id)]
            values += [
                db.db_uuid(message.id), session, message.position,
                message.kind, message.state, message.parts, message.sent_parts, *found,
                message.turn_id and db.db_uuid(message.turn_id), message.author_id,
                message.client_message_id, message.finish, db.db_time(message.created_at),
            ]  # fmt: skip
            tuples.append(f"({_MARKS_7}, {parent}, {_MARKS_5})")
            self._rows.append(message.row)
        stored = db.rows(
            f"INSERT INTO {_MESSAGE} ({_INSERT_COLUMNS}) VALUES {', '.join(tuples)}"
            " RETURNING id, parent_id",
            values,
        )
        parents = {db.to_uuid(pk): parent and db.to_uuid(parent) for pk, parent in stored}
        for message in messages:
            message.hangs_on = parents[message.id]

    def set_parts(self, message_id: UUID, parts: str, sent_parts: str | None = None) -> int:
        """Replaces one row's content; how many rows it found."""
        found = db.execute(
            f"UPDATE {_MESSAGE} SET parts = %s, sent_parts = %s WHERE id = %s AND session_id = %s",
            [parts, sent_parts, db.db_uuid(message_id), db.db_uuid(self.session_id)],
        )
        self._read([message_id])
        return found

    def set_state(self, message_ids: Sequence[UUID], state: str) -> int:
        """Moves rows into `state`; how many rows it found."""
        found = 0
        for start in range(0, len(message_ids), 500):
            batch = message_ids[start : start + 500]
            found += db.execute(
                f"UPDATE {_MESSAGE} SET state = %s WHERE session_id = %s AND id IN"
                f" ({', '.join(['%s'] * len(batch))})",
                [state, db.db_uuid(self.session_id), *map(db.db_uuid, batch)],
            )
            self._read(batch)
        return found

    def delete(self, message_ids: Sequence[UUID]) -> int:
        """Deletes rows for good (erasure, retention); how many there were."""
        self._removed = True
        gone = 0
        for start in range(0, len(message_ids), 500):
            batch = message_ids[start : start + 500]
            gone += db.execute(
                f"DELETE FROM {_MESSAGE} WHERE session_id = %s AND id IN"
                f" ({', '.join(['%s'] * len(batch))})",
                [db.db_uuid(self.session_id), *map(db.db_uuid, batch)],
            )
        return gone

    def announce(self, revision: int) -> None:
        """Registers the signal for after the commit; `revision` was read after the last row."""
        self.revision = revision
        commit = TranscriptCommit(
            session_id=self.session_id,
            incarnation=self.incarnation,
            from_revision=self.from_revision,
            revision=revision,
            rows=tuple({row.id: row for row in self._rows}.values()),
            removed=self._removed,
        )
        transaction.on_commit(
            partial(transcript_committed.send_robust, sender=TranscriptWrite, commit=commit),
            using=db.alias(),
            robust=True,
        )

    def _read(self, message_ids: Sequence[UUID]) -> None:
        found = db.rows(
            f"SELECT {_ROW_COLUMNS} FROM {_MESSAGE} WHERE session_id = %s AND id IN"
            f" ({', '.join(['%s'] * len(message_ids))})",
            [db.db_uuid(self.session_id), *map(db.db_uuid, message_ids)],
        )
        self._rows += [TranscriptRow(db.to_uuid(row[0]), *row[1:]) for row in found]


def lock_session(session_id: UUID) -> SessionHead:
    """Locks a live, active session. Raises SessionNotFound, SessionEnded."""
    found = db.rows(
        "SELECT revision, incarnation, next_block, open_block, state, deleted_at, key"
        f" FROM {_SESSION} WHERE id = %s{db.lock_sql()}",
        [db.db_uuid(session_id)],
    )
    if not found or found[0][5] is not None:
        raise SessionNotFound
    revision, incarnation, next_block, open_block, state, _, key = found[0]
    if state != "active":
        raise SessionEnded(successor_of(key))
    return SessionHead(session_id, revision, incarnation, next_block, open_block)


def successor_of(key: str) -> UUID | None:
    """The session that is current under `key` now."""
    current = Session.objects.live().filter(key=key, state="active")
    return current.values_list("pk", flat=True).first()


def read_revision(session_id: UUID) -> int:
    """The session's revision as this transaction sees it. Raises SessionNotFound."""
    found = db.rows(f"SELECT revision FROM {_SESSION} WHERE id = %s", [db.db_uuid(session_id)])
    if not found:
        raise SessionNotFound
    return int(found[0][0])


def refuse_while_open(head: SessionHead, position: int | None = None) -> None:
    """Raises SessionBusy while a turn runs or waits.

    With `position`, a change before the running turn's block is allowed.
    """
    if head.open_block and (position is None or position >= head.open_block * BLOCK):
        raise SessionBusy


@contextmanager
def write_transcript(session_id: UUID) -> Iterator[tuple[SessionHead, TranscriptWrite]]:
    """One transaction on one locked session; announced when the outermost transaction commits."""
    with transaction.atomic(using=db.alias(), savepoint=False):
        head = lock_session(session_id)
        write = TranscriptWrite(
            session_id, incarnation=head.incarnation, from_revision=head.revision
        )
        yield head, write
        write.announce(read_revision(session_id))
