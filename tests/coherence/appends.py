"""What anybody may add, and the transactions that several writes share."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction

from sessions_app.models import BLOCK, Message
from sessions_app.services import (
    append_messages,
    branch_from,
    compact_messages,
    edit_message,
    select_branch,
)
from sessions_app.transcript import NewMessage
from tests.coherence.edits import words
from tests.coherence.processes import Process
from tests.coherence.raw import MESSAGE
from tests.coherence.truth import require
from tests.coherence.world import CONFLICTS, REFUSALS, Operation, Pick, World

KINDS = ("user", "operator", "notice", "assistant", "note", "system")


class _Rollback(Exception):
    """Ends a transaction that is not to stand."""


def _new(world: World, pick: Pick) -> NewMessage:
    sent = world.text() if pick.below(3) == 0 else None
    return NewMessage(kind=KINDS[pick.below(len(KINDS))], parts=world.text(pick), sent_parts=sent)


@contextmanager
def _beside(world: World, session_id: UUID) -> Iterator[None]:
    """Rows that come within must stand after the answer of the turn that runs now."""
    before = world.stored(session_id).rows.keys()
    yield
    world.settle()
    turn = world.turns.get(session_id)
    if turn is not None:
        rows = world.stored(session_id).rows.values()
        turn.beside |= {row.id: row.position for row in rows if row.id not in before}


def append_by_service(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    messages = [_new(world, pick) for _ in range(1 + pick.below(3))]
    with _beside(world, session_id), world.own(process, session_id):
        append_messages(session_id=session_id, messages=messages)


def append_raw(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """A bare INSERT of three columns, of one row or two."""
    marks = ["(%s, 'user', %s)"] * (1 + pick.below(2))
    params = [value for _ in marks for value in (session_id, world.text())]
    with _beside(world, session_id):
        world.client.run(
            f"INSERT INTO {MESSAGE} (session_id, kind, parts) VALUES {', '.join(marks)}", params
        )


def append_by_model(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """Through the ORM, which knows no position."""
    parts = json.loads(world.text())
    with _beside(world, session_id):
        Message.objects.create(session_id=session_id, kind="operator", parts=parts)


def insert_between(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """A row with a position of its own choice, at the front, in the midst, behind all."""
    row = world.row(session_id, pick)
    position = [1, (row.position if row else 0) + 1, BLOCK * 40 + pick.below(9)][pick.below(3)]
    columns = "session_id, kind, parts, position"
    sql = f"INSERT INTO {MESSAGE} ({columns}) VALUES (%s, 'user', %s, %s)"
    try:
        world.client.run(sql, [session_id, world.text(), position])
    except world.client.refusals:
        require(not world.settle(), "refusal", "a refused statement left something behind")


def append_in_bulk(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """bulk_create; with ignore_conflicts some rows are dropped by the database."""
    ignore = bool(pick.below(2))
    row = world.row(session_id, pick, state="active")
    taken = [row.position] if row and ignore else []
    rows = [
        Message(session_id=session_id, kind="user", parts=json.loads(world.text()), position=place)
        for place in [0, *taken, 0]
    ]
    Message.objects.bulk_create(rows, ignore_conflicts=ignore)


def append_to_two(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """One transaction writes two sessions by the services, in ascending order."""
    pair = sorted({session_id, world.sessions[pick.below(3)]})
    with world.signals.of(process):
        try:
            with transaction.atomic():
                for one in pair:
                    append_messages(session_id=one, messages=[_new(world, pick)])
        except REFUSALS:
            require(not world.settle(), "refusal", "half a transaction stands")
    world.settle(several=True)


def roll_back_own(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """A service's own transaction breaks; an ENCLOSING one; nothing is heard of either."""
    row = world.row(session_id, pick)
    with world.signals.of(process):
        try:
            with transaction.atomic():
                append_messages(session_id=session_id, messages=[_new(world, pick)])
                if row is not None and pick.below(2):
                    text = words(world, row, pick)
                    edit_message(session_id=session_id, message_id=row.id, parts=text)
                raise _Rollback
        except (_Rollback, *REFUSALS):
            pass
    require(not world.settle(), "rollback", "a transaction that broke left something behind")


def roll_back_savepoint(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Of three writes in one transaction, the one in a savepoint is taken back."""
    with world.signals.of(process):
        try:
            with transaction.atomic():
                append_messages(session_id=session_id, messages=[_new(world, pick)])
                try:
                    with transaction.atomic():
                        append_messages(session_id=session_id, messages=[_new(world, pick)])
                        raise _Rollback
                except _Rollback:
                    pass
                if pick.below(2):
                    append_messages(session_id=session_id, messages=[_new(world, pick)])
        except REFUSALS:
            pass
    world.settle(several=True)


def mix_own_and_raw(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """A service and the ORM write in one transaction: the service's signal tells half of it."""
    row = world.row(session_id, pick)
    with world.signals.of(process):
        try:
            with transaction.atomic():
                if pick.below(2) and row is not None:
                    Message.objects.filter(pk=row.id).update(state="hidden")
                append_messages(session_id=session_id, messages=[_new(world, pick)])
                if row is not None:
                    parts = json.loads(words(world, row, pick))
                    Message.objects.filter(pk=row.id).update(parts=parts)
                if pick.below(2):
                    append_messages(session_id=session_id, messages=[_new(world, pick)])
        except REFUSALS:
            pass
    world.settle(several=True)


def compact(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Old rows become a summary: idle, or before the running turn's block."""
    row = world.row(session_id, pick, state="active")
    if row is None:
        return
    until, turn = row.position, world.turns.get(session_id)
    inside = turn is not None and until >= turn.run.block * BLOCK
    summary = NewMessage(kind="summary", parts=world.text())
    with world.own(process, session_id, idle=inside):
        compact_messages(session_id=session_id, until_position=until, summary=summary)
    rows = world.stored(session_id).rows
    if summary.id in rows:
        require(rows[summary.id].position == until, "order", "a summary stands somewhere else")


def branch_away(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Everything from a row on becomes another branch."""
    if row := world.row(session_id, pick, state="active"):
        with world.own(process, session_id, idle=True):
            branch_from(session_id=session_id, position=row.position)


def switch_branch(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Another branch is the active one."""
    if row := world.row(session_id, pick, state="branched"):
        with world.own(process, session_id, idle=True, refusals=CONFLICTS):
            select_branch(session_id=session_id, message_id=row.id)


APPENDS: dict[str, Operation] = {
    "append: service": append_by_service,
    "append: raw": append_raw,
    "append: save()": append_by_model,
    "append: between": insert_between,
    "append: bulk": append_in_bulk,
    "append: two sessions": append_to_two,
    "rollback": roll_back_own,
    "rollback: savepoint": roll_back_savepoint,
    "mixed transaction": mix_own_and_raw,
    "compact": compact,
    "branch": branch_away,
    "branch: switch": switch_branch,
}
