"""A run takes hold of its session: lease, generation, block, its message's row, first events."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model

from gateway_app import events
from gateway_app.config import gateway_config
from gateway_app.event_store import LoggedEvents, insert_events
from gateway_app.models import Turn
from gateway_app.selectors.queue import queued_sql, read_queue
from gateway_app.services.branches import active_from, branch_position
from gateway_app.services.prompts import FrozenConfig, freeze_prompt
from gateway_app.shapes import new_message_shape
from sessions_app import database as db
from sessions_app.fields import dump_json
from sessions_app.models import BLOCK, Session
from sessions_app.transcript import NewMessage, TranscriptWrite

_SESSION: Final = Session._meta.db_table
_TURN: Final = Turn._meta.db_table
_TITLE_LENGTH: Final = 60


@dataclass(frozen=True, slots=True)
class RunLease:
    """One run that this process holds: what it needs to write as this run and no other."""

    session_id: UUID
    turn_id: UUID
    generation: int
    block: int
    config: tuple[str, int, str, str]
    author_id: int | None
    platform: str = "web"
    first_turn: bool = False
    last_seq: int = 0
    """The last seq of what began the run in the log."""
    frozen: FrozenConfig | None = None
    """What the first turn froze, so that nobody has to read it again."""


@dataclass(slots=True)
class LockedSession:
    """The session's row as a turn's transaction locked it."""

    id: UUID
    revision: int
    incarnation: int
    next_block: int
    open_block: int
    run_generation: int
    title: str
    config: tuple[str, int, str, str]
    waiting: int
    platform: str = "web"


def start_waiting(locked: LockedSession, lease_owner: str) -> tuple[RunLease, LoggedEvents] | None:
    """Within the caller's transaction: starts the first waiting turn of a locked, free session."""
    users = get_user_model()._meta.db_table
    found = db.rows(
        "SELECT t.id, t.content, t.author_id, t.client_message_id, u.username, t.edit_of,"
        f" t.retry_of FROM {_TURN} t LEFT JOIN {users} u ON u.id = t.author_id"
        f" WHERE t.session_id = %s AND {queued_sql('t')}"
        " ORDER BY t.priority DESC, t.accepted_seq LIMIT 1",
        [db.db_uuid(locked.id)],
    )
    if not found:
        return None
    turn_id, content, author_id, client_message_id, name, *branch = found[0]
    turn_id = db.to_uuid(turn_id)
    edit_of, retry_of = (one and db.to_uuid(one) for one in branch)
    # what was to be replaced may be gone by now: then the answer stands after what is there
    branch_at = branch_position(locked.id, edit_of, retry_of) if edit_of or retry_of else None
    db.execute(
        f"UPDATE {_TURN} SET state = 'running', started_at = {db.now_sql()}, block = %s,"
        " generation = %s, runs = runs + 1, lease_owner = %s WHERE id = %s",
        [locked.next_block, locked.run_generation + 1, lease_owner, db.db_uuid(turn_id)],
    )
    return start_run(
        locked,
        turn_id=turn_id,
        content=content,
        author_id=author_id,
        names={author_id: name or ""},
        client_message_id=client_message_id,
        lease_owner=lease_owner,
        queue_changed=True,
        branch_at=branch_at,
    )


def start_run(
    locked: LockedSession,
    *,
    turn_id: UUID,
    content: list[dict[str, Any]] | str | None,
    author_id: int | None,
    names: Mapping[int, str],
    client_message_id: str | None,
    lease_owner: str,
    queue_changed: bool = False,
    branch_at: int | None = None,
) -> tuple[RunLease, LoggedEvents]:
    """The run holds the session; the user's row (if any) is the first of its block.

    With `branch_at`, active rows from that position on are another branch first.
    """
    block, generation = locked.next_block, locked.run_generation + 1
    frozen = None if locked.config[3] else freeze_prompt(locked.config)
    write = TranscriptWrite(
        locked.id, incarnation=locked.incarnation, from_revision=locked.revision
    )
    if branch_at is not None:
        write.set_state(active_from(locked.id, branch_at), "branched")
    message = None
    if content is not None:
        message = _user_row(locked, content, turn_id, author_id, client_message_id)
        write.insert([message])
    title = "" if locked.title or message is None else _title_of(message.parts)
    count = 2 + (message is not None) + bool(title) + queue_changed + (branch_at is not None)
    revision, seq = _hold_session(locked, frozen, title, lease_owner, count)
    write.announce(revision)
    told = _told(locked, message, revision, names, branch_at, title, queue_changed)
    started = [events.run_started(locked.id, turn_id, generation), *told]
    run = RunLease(
        session_id=locked.id,
        turn_id=turn_id,
        generation=generation,
        block=block,
        config=frozen.config if frozen else locked.config,
        author_id=author_id,
        platform=locked.platform,
        first_turn=frozen is not None,
        last_seq=seq,
        frozen=frozen,
    )
    return run, insert_events(locked.id, turn_id, generation, seq, started)


def _user_row(
    locked: LockedSession,
    content: list[dict[str, Any]] | str,
    turn_id: UUID,
    author_id: int | None,
    client_message_id: str | None,
) -> NewMessage:
    """The message of the turn, first in the block that it opens."""
    return NewMessage(
        kind="user",
        parts=content if isinstance(content, str) else dump_json(content),
        position=locked.next_block * BLOCK + 1,
        turn_id=turn_id,
        author_id=author_id,
        client_message_id=client_message_id,
    )


def _told(
    locked: LockedSession,
    message: NewMessage | None,
    revision: int,
    names: Mapping[int, str],
    branch_at: int | None,
    title: str,
    queue_changed: bool,
) -> list[bytes]:
    """What the start of a run changed, as the log tells it."""
    told = []
    if branch_at is not None:
        told.append(events.rewritten(branch_at, revision))
    if message is not None:
        told.append(events.custom("message", new_message_shape(message, revision, names)))
    if title:
        told.append(events.custom("title", {"title": title}))
    if queue_changed:
        told.append(events.custom("queue", {"queue": read_queue(locked.id)}))
    ids = [] if message is None else [message.id]
    return [*told, events.committed(locked.revision, revision, ids)]


def _hold_session(
    locked: LockedSession, frozen: FrozenConfig | None, title: str, lease_owner: str, count: int
) -> tuple[int, int]:
    """Lease, generation, block and `count` seqs in one statement; (revision, last seq)."""
    sets = [
        "run_generation = run_generation + 1", "lease_owner = %s",
        f"lease_expires_at = {db.now_sql(plus_s=gateway_config().lease_s)}", "open_block = %s",
        "next_block = CASE WHEN next_block > %s THEN next_block ELSE %s END",
        "event_seq = event_seq + %s", f"updated_at = {db.now_sql()}",
    ]  # fmt: skip
    block = locked.next_block
    params: list[object] = [lease_owner, block, block, block + 1, count]
    if title:
        sets.append("title = %s")
        params.append(title)
    if frozen:
        sets += ["agent_version = %s", "prompt_hash = %s"]
        params += [frozen.config[1], frozen.config[3]]
    found = db.rows(
        f"UPDATE {_SESSION} SET {', '.join(sets)} WHERE id = %s RETURNING revision, event_seq",
        [*params, db.db_uuid(locked.id)],
    )
    return found[0][0], found[0][1]


def _title_of(parts: str) -> str:
    """The first line of a message, cut at a word: a conversation's first title."""
    text = next((part.get("text", "") for part in json.loads(parts) if part.get("text")), "")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) <= _TITLE_LENGTH:
        return line
    return line[:_TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
