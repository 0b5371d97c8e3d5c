"""From a message to a running turn: accept, queue, start. Each call is one transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model
from django.db import transaction

from gateway_app import events
from gateway_app.config import gateway_config
from gateway_app.errors import IdempotencyMismatch, QueueFull
from gateway_app.event_store import LoggedEvents, insert_events
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.selectors.queue import queued_sql, read_queue
from gateway_app.services import busy
from gateway_app.services.agents import agent_slug, checked_model
from gateway_app.services.branches import active_from, branch_position, check_branch
from gateway_app.services.prompts import FrozenConfig, freeze_prompt
from gateway_app.shapes import new_message_shape
from sessions_app import database as db
from sessions_app.errors import MessageInvalid, SessionBusy, SessionEnded, SessionNotFound
from sessions_app.fields import dump_json
from sessions_app.keys import split_key, web_key
from sessions_app.models import BLOCK, Session, new_id
from sessions_app.transcript import (
    NewMessage,
    TranscriptWrite,
    retry_lost_race,
    successor_of,
)

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


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer to a send. `run` is set when this call started the turn."""

    session_id: UUID
    turn_id: UUID
    status: str
    replayed: bool
    place: int | None = None
    run: RunLease | None = None
    startable: bool = False
    """The session is free: whoever runs turns may start the first waiting one."""
    stopping: tuple[UUID, int] | None = None
    """(turn, generation) of the run that was told to stop for this message."""
    logged: tuple[LoggedEvents, ...] = ()


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


class _Repeated(Exception):
    """The author has used this client message id: the transaction is to be rolled back."""


@retry_lost_race
def accept_turn(
    *, inbound: Inbound, session_id: UUID | None, lease_owner: str, start: bool = True
) -> Accepted:
    """The message is durable: its turn runs (if the session is free and `start`) or waits.

    A repeat answers with the first one's ids. Raises SessionNotFound, SessionEnded, SessionBusy,
    QueueFull, IdempotencyMismatch, Unsupported.
    """
    busy.check_policy(inbound)
    if session_id is None and (earlier := _earlier(inbound)):
        return earlier
    try:
        with transaction.atomic(using=db.alias(), savepoint=False):
            if session_id is None:
                session_id = _insert_session(inbound)
            return _accept(inbound, session_id, lease_owner, start)
    except _Repeated:
        repeated = _earlier(inbound)
        assert repeated is not None
        return repeated


def _accept(inbound: Inbound, session_id: UUID, lease_owner: str, start: bool) -> Accepted:
    locked = _lock(session_id, inbound)
    is_busy = locked.open_block > 0 or locked.waiting > 0
    if is_busy and inbound.when_busy == "reject":
        raise SessionBusy
    if is_busy and locked.waiting >= gateway_config().max_queued:
        raise QueueFull(gateway_config().max_queued)
    turn_id = new_id()
    if is_busy or not start:
        return _enqueue(locked, inbound, turn_id)
    return _start_accepted(locked, inbound, turn_id, lease_owner)


def _start_accepted(
    locked: LockedSession, inbound: Inbound, turn_id: UUID, lease_owner: str
) -> Accepted:
    branch_at = None
    if inbound.branches:
        check_branch(locked.id, inbound)
        branch_at = branch_position(locked.id, inbound.edit_of, inbound.retry_of)
        if branch_at is None:
            raise MessageInvalid("This turn has no answer on this branch to try again.")
    _insert_turn(locked, inbound, turn_id, state="running", lease_owner=lease_owner)
    run, logged = _start_run(
        locked,
        turn_id=turn_id,
        content=inbound.content,
        author_id=inbound.author_id,
        names={inbound.author_id: inbound.author_name},
        client_message_id=inbound.client_message_id,
        lease_owner=lease_owner,
        branch_at=branch_at,
    )
    return Accepted(locked.id, turn_id, "running", replayed=False, run=run, logged=(logged,))


def _enqueue(locked: LockedSession, inbound: Inbound, turn_id: UUID) -> Accepted:
    stopping, priority = None, 0
    if inbound.branches:
        check_branch(locked.id, inbound)
        busy.refuse_second_branch(locked.id)
    if inbound.when_busy == "interrupt":
        priority = busy.head_priority(locked.id)
        stopping = busy.request_stop(locked.id)
    _insert_turn(locked, inbound, turn_id, state="queued", priority=priority)
    queue = read_queue(locked.id)
    seq = db.rows(
        f"UPDATE {_SESSION} SET event_seq = event_seq + 1, updated_at = {db.now_sql()}"
        " WHERE id = %s RETURNING event_seq",
        [db.db_uuid(locked.id)],
    )[0][0]
    logged = insert_events(locked.id, None, 0, seq, [events.custom("queue", {"queue": queue})])
    return Accepted(
        locked.id,
        turn_id,
        busy.waiting_status(inbound.when_busy, locked.open_block),
        replayed=False,
        place=next(item["place"] for item in queue if item["turnId"] == str(turn_id)),
        startable=locked.open_block == 0,
        stopping=stopping,
        logged=(logged,),
    )


def start_next_turn(*, session_id: UUID, lease_owner: str) -> tuple[RunLease, LoggedEvents] | None:
    """The first waiting turn of a free session runs; None if there is nothing to start."""
    with transaction.atomic(using=db.alias(), savepoint=False):
        locked = _lock(session_id, None)
        if locked.open_block:
            return None
        return start_waiting(locked, lease_owner)


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
    return _start_run(
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


def _start_run(
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
        message = NewMessage(
            kind="user",
            parts=content if isinstance(content, str) else dump_json(content),
            position=block * BLOCK + 1,
            turn_id=turn_id,
            author_id=author_id,
            client_message_id=client_message_id,
        )
        write.insert([message])
    title = "" if locked.title or message is None else _title_of(message.parts)
    count = 2 + (message is not None) + bool(title) + queue_changed + (branch_at is not None)
    revision, seq = _hold_session(locked, frozen, title, lease_owner, count)
    write.announce(revision)
    started = [events.run_started(locked.id, turn_id, generation)]
    if branch_at is not None:
        started.append(events.rewritten(branch_at, revision))
    if message is not None:
        started.append(events.custom("message", new_message_shape(message, revision, names)))
    if title:
        started.append(events.custom("title", {"title": title}))
    if queue_changed:
        started.append(events.custom("queue", {"queue": read_queue(locked.id)}))
    started.append(
        events.committed(locked.revision, revision, [message.id] if message is not None else [])
    )
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


def _lock(session_id: UUID, inbound: Inbound | None) -> LockedSession:
    """Locks the session for a turn. With `inbound`: only its owner's, and not for a repeat."""
    earlier = "NULL"
    params: list[object] = [db.db_uuid(session_id)]
    if inbound is not None:
        earlier = f"(SELECT id FROM {_TURN} WHERE author_id = %s AND client_message_id = %s)"
        params = [inbound.author_id, inbound.client_message_id, *params]
    found = db.rows(
        "SELECT s.revision, s.incarnation, s.next_block, s.open_block, s.run_generation, s.title,"
        " s.agent, s.agent_version, s.model, s.prompt_hash, s.state, s.deleted_at, s.owner_id,"
        f" s.key, (SELECT count(*) FROM {_TURN} t WHERE t.session_id = s.id AND"
        f" {queued_sql('t')}), {earlier} FROM {_SESSION} s WHERE s.id = %s{db.lock_sql()}",
        params,
    )
    if not found:
        raise SessionNotFound
    (revision, incarnation, next_block, open_block, generation, title, *config) = found[0][:10]
    state, deleted_at, owner_id, key, waiting, repeated = found[0][10:]
    if inbound is not None and owner_id != inbound.author_id:
        raise SessionNotFound
    if repeated is not None:
        raise _Repeated
    if deleted_at is not None:
        raise SessionNotFound
    if state != "active":
        raise SessionEnded(successor_of(key))
    return LockedSession(
        id=session_id,
        revision=revision,
        incarnation=incarnation,
        next_block=next_block,
        open_block=open_block,
        run_generation=generation,
        title=title,
        config=(config[0], config[1], config[2], config[3]),
        waiting=waiting,
        platform=split_key(key)[2],
    )


def _insert_session(inbound: Inbound) -> UUID:
    """A new web conversation of the author, with the agent and model it asks for."""
    slug, session_id = agent_slug(inbound.agent), new_id()
    db.execute(
        f"INSERT INTO {_SESSION} (id, key, owner_id, agent, model) VALUES (%s, %s, %s, %s, %s)",
        [
            db.db_uuid(session_id),
            web_key(slug, inbound.author_id, uuid4()),
            inbound.author_id,
            slug,
            checked_model(inbound.model or ""),
        ],
    )
    return session_id


def _insert_turn(
    locked: LockedSession,
    inbound: Inbound,
    turn_id: UUID,
    *,
    state: str,
    lease_owner: str = "",
    priority: int = 0,
) -> None:
    """The turn's row stands. Raises _Repeated when a concurrent repeat was first."""
    running = state == "running"
    inserted = db.execute(
        f"INSERT INTO {_TURN} (id, session_id, state, author_id, client_message_id, body_hash,"
        " content, when_busy, retry_of, edit_of, priority, accepted_seq, block, generation, runs,"
        " lease_owner, started_at)"
        " SELECT %s, s.id, %s, %s, %s, %s, %s, %s, %s, %s, %s, s.event_seq + 1, %s, %s, %s, %s,"
        f" {db.now_sql() if running else 'NULL'} FROM {_SESSION} s WHERE s.id = %s"
        " ON CONFLICT (author_id, client_message_id) DO NOTHING",
        [
            db.db_uuid(turn_id), state, inbound.author_id, inbound.client_message_id,
            inbound.body_hash, None if inbound.content is None else dump_json(inbound.content),
            inbound.when_busy, inbound.retry_of and db.db_uuid(inbound.retry_of),
            inbound.edit_of and db.db_uuid(inbound.edit_of), priority,
            locked.next_block if running else None,
            locked.run_generation + 1 if running else 0, int(running), lease_owner,
            db.db_uuid(locked.id),
        ],
    )  # fmt: skip
    if not inserted:
        raise _Repeated


def _earlier(inbound: Inbound) -> Accepted | None:
    """The answer to a repeat: the first one's ids and the turn's present status."""
    found = (
        Turn.objects.filter(
            author_id=inbound.author_id, client_message_id=inbound.client_message_id
        )
        .values_list("session_id", "pk", "state", "body_hash", "when_busy", "session__open_block")
        .first()
    )
    if found is None:
        return None
    session_id, turn_id, state, body_hash, when_busy, open_block = found
    if body_hash != inbound.body_hash:
        raise IdempotencyMismatch
    if state == "queued":
        state = busy.waiting_status(when_busy, open_block)
    return Accepted(session_id, turn_id, state, replayed=True)


def _title_of(parts: str) -> str:
    """The first line of a message, cut at a word: a conversation's first title."""
    text = next((part.get("text", "") for part in json.loads(parts) if part.get("text")), "")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) <= _TITLE_LENGTH:
        return line
    return line[:_TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
