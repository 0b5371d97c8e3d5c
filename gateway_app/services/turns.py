"""From a message to a turn that runs or waits. Each call is one transaction."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid4

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
from gateway_app.services.branches import branch_position, check_branch
from gateway_app.services.starting import LockedSession, RunLease, start_run, start_waiting
from sessions_app import database as db
from sessions_app.errors import MessageInvalid, SessionBusy, SessionEnded, SessionNotFound
from sessions_app.fields import dump_json
from sessions_app.keys import split_key, web_key
from sessions_app.models import Session, new_id
from sessions_app.sentences import say
from sessions_app.transcript import (
    retry_lost_race,
    successor_of,
)

_SESSION: Final = Session._meta.db_table
_TURN: Final = Turn._meta.db_table


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
            raise MessageInvalid(say("This turn has no answer on this branch to try again."))
    _insert_turn(locked, inbound, turn_id, state="running", lease_owner=lease_owner)
    run, logged = start_run(
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
