"""What anybody may do to rows that stand: edit, delete, move, in every way there is."""

import json
from uuid import UUID

from django.db import IntegrityError, transaction

from sessions_app.fields import dump_json
from sessions_app.models import BLOCK, Message, Session
from sessions_app.services import (
    append_messages,
    delete_messages,
    edit_message,
    set_message_state,
    undo_messages,
)
from sessions_app.signals import TranscriptRow
from sessions_app.transcript import NewMessage, write_transcript
from tests.coherence.oracle import calls_of
from tests.coherence.processes import Process
from tests.coherence.raw import MESSAGE
from tests.coherence.truth import require
from tests.coherence.world import CONFLICTS, Operation, Pick, World

KINDS = ("user", "assistant", "operator", "notice", "system", "note", "session_meta")
STATES = ("active", "hidden", "branched", "superseded", "compacted")


def plain(row: TranscriptRow) -> bool:
    """Whether the row stays readable as another kind."""
    return "tool_" not in row.parts + (row.sent_parts or "") and row.kind in KINDS[:6]


def words(world: World, row: TranscriptRow, pick: Pick) -> str:
    """Other parts for the row that fit its kind; a tool's answer keeps its call."""
    _, call = calls_of(row)
    if call is None:
        return world.text(pick)
    content = f"found {next(world.numbers)}"
    return dump_json([{"type": "tool_result", "callId": call, "content": content}])


def edit_by_service(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    if row := world.row(session_id, pick):
        turn = world.turns.get(session_id)
        inside = turn is not None and row.position >= turn.run.block * BLOCK
        with world.own(process, session_id, idle=inside):
            edit_message(session_id=session_id, message_id=row.id, parts=words(world, row, pick))


def edit_twice(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """One transaction changes one row twice; what it tells is the last."""
    row = world.row(session_id, pick)
    if row is None:
        return
    own = world.own(process, session_id, several=True)
    with own, write_transcript(session_id) as (_, write):
        write.set_parts(row.id, words(world, row, pick), row.sent_parts)
        write.set_parts(row.id, words(world, row, pick), row.sent_parts)


def edit_raw(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """Any visible column of any row, by bare SQL."""
    row = world.row(session_id, pick)
    if row is None:
        return
    columns = ("parts", "sent_parts", "state", "kind")
    column = columns[pick.below(4 if plain(row) else 3)]
    values = {
        "parts": words(world, row, pick),
        "sent_parts": words(world, row, pick) if pick.often() else None,
        "kind": KINDS[pick.below(len(KINDS) if plain(row) else 1)],
        "state": STATES[pick.below(len(STATES))],
    }
    _raw(world, f"UPDATE {MESSAGE} SET {column} = %s WHERE id = %s", [values[column], row.id])


def _raw(world: World, sql: str, params: list[object]) -> None:
    """One bare statement; a constraint may refuse it."""
    try:
        world.client.run(sql, params)
    except world.client.refusals:
        require(not world.settle(), "refusal", "a refused statement left something behind")


def edit_by_update(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """QuerySet.update, on one row or on all of one kind."""
    row = world.row(session_id, pick)
    if row is None:
        return
    rows = Message.objects.filter(session_id=session_id)
    many = plain(row) and row.kind == "user" and pick.below(2)
    rows = rows.filter(kind=row.kind) if many else rows.filter(pk=row.id)
    fields = ("parts", "sent_parts", "state", "feedback", "kind")
    field = fields[pick.below(5 if plain(row) else 4)]
    text = json.loads(words(world, row, pick))
    value = {"parts": text, "sent_parts": text, "kind": "notice", "state": "hidden", "feedback": 1}
    rows.update(**{field: value[field]})


def edit_by_instance(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """A full save of a fresh instance, with something changed or with nothing."""
    row = world.row(session_id, pick)
    if row is None:
        return
    instance = Message.objects.get(pk=row.id)
    if pick.often():
        instance.parts = json.loads(words(world, row, pick))
    else:
        instance.feedback = pick.below(3)
    instance.save()


def there_and_back(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """A-B-A: the row ends as it began, in two commits, or in one."""
    row = world.row(session_id, pick, state="active")
    if row is None:
        return
    sql = f"UPDATE {MESSAGE} SET parts = %s WHERE id = %s"
    way = pick.below(3)
    if way == 0:
        world.client.run(sql, [words(world, row, pick), row.id])
        world.settle()
        world.client.run(sql, [row.parts, row.id])
    elif way == 1:
        for text in (words(world, row, pick), row.parts):
            with world.own(process, session_id):
                edit_message(session_id=session_id, message_id=row.id, parts=text)
    else:
        with transaction.atomic():
            found = Message.objects.filter(pk=row.id)
            found.update(parts=json.loads(words(world, row, pick)))
            found.update(parts=json.loads(row.parts))
        world.settle(several=True)


def save_silently(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Title, feedback, a save of nothing: no model sees it, the clock stands still."""
    before = world.stored(session_id).baseline
    row = world.row(session_id, pick)
    if row and pick.below(2):
        instance = Message.objects.get(pk=row.id)
        instance.feedback, instance.finish = pick.below(3) - 1, "seen"
        instance.save() if dump_json(instance.parts) == row.parts else None
    session = Session.objects.get(pk=session_id)
    session.title, session.pinned = f"title {pick.below(9)}", True
    session.save(update_fields=["title", "pinned"])
    still = not world.settle() and world.stored(session_id).baseline == before
    require(still, "I1 moves", "what no model sees moved the clock")


def save_stale(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Both models are saved as they were before others wrote; the clock does not turn back."""
    row = world.row(session_id, pick)
    session = Session.objects.get(pk=session_id)
    instance = Message.objects.get(pk=row.id) if row else None
    world.client.run(
        f"INSERT INTO {MESSAGE} (session_id, kind, parts) VALUES (%s, 'user', %s)",
        [session_id, world.text()],
    )
    world.settle()
    if row and pick.below(2):
        sql = f"UPDATE {MESSAGE} SET parts = %s WHERE id = %s"
        world.client.run(sql, [words(world, row, pick), row.id])
        world.settle()
        if pick.below(2):
            world.client.run(sql, [row.parts, row.id])
            world.settle()
    session.title = "stale"
    session.save()
    world.settle()
    if instance is not None:
        instance.feedback = 1
        instance.save()


def change_state(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Some rows leave or return by the service."""
    rows = [row for row in (world.row(session_id, pick) for _ in range(1 + pick.below(3))) if row]
    gone = [row.id for row in rows if row.state != "active"]
    state = "active" if gone else STATES[pick.below(len(STATES))]
    with world.own(process, session_id, idle=True, refusals=CONFLICTS):
        set_message_state(
            session_id=session_id, message_ids=gone or [row.id for row in rows], state=state
        )


def delete_by_service(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    if row := world.row(session_id, pick):
        with world.own(process, session_id, fits=False, idle=True):
            delete_messages(session_id=session_id, message_ids=[row.id])


def delete_otherwise(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """By a QuerySet, by an instance, by bare SQL."""
    row = world.row(session_id, pick)
    if row is None:
        return
    way = pick.below(3)
    if way == 0:
        Message.objects.filter(session_id=session_id, kind=row.kind, state=row.state).delete()
    elif way == 1:
        Message.objects.get(pk=row.id).delete()
    else:
        world.client.run(f"DELETE FROM {MESSAGE} WHERE id = %s", [row.id])


def hide_then_delete(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """A row leaves the model's sight and is purged: a cache that missed both still holds it."""
    if row := world.row(session_id, pick, state="active"):
        sql = f"UPDATE {MESSAGE} SET state = 'hidden' WHERE id = %s"
        world.client.run(sql, [row.id])
        world.settle()
        world.client.run(f"DELETE FROM {MESSAGE} WHERE id = %s", [row.id])


def undo_and_append(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """As many rows leave as come: the count is what it was."""
    size = 1 + pick.below(3)
    with world.own(process, session_id, idle=True):
        undone = undo_messages(session_id=session_id, count=size)
        size = len(undone)
    with world.own(process, session_id):
        append_messages(
            session_id=session_id,
            messages=[NewMessage(kind="user", parts=world.text()) for _ in range(size)],
        )


def move_position(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """A row stands somewhere else from now on, also at the place of none (0: the next block)."""
    row, other = world.row(session_id, pick), world.row(session_id, pick)
    if row is None or other is None:
        return
    position = [0, other.position + 1, max(other.position - 1, 1), other.position][pick.below(4)]
    _raw(world, f"UPDATE {MESSAGE} SET position = %s WHERE id = %s", [position, row.id])


def swap_positions(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """Two rows change places, in one transaction."""
    row, other = world.row(session_id, pick), world.row(session_id, pick)
    if row is None or other is None or row.id == other.id:
        return
    rows = Message.objects.filter(session_id=session_id)
    away = max(one.position for one in world.stored(session_id).rows.values()) + 1
    try:
        with transaction.atomic():
            rows.filter(pk=row.id).update(position=away)
            rows.filter(pk=other.id).update(position=row.position)
            rows.filter(pk=row.id).update(position=other.position)
    except IntegrityError:
        require(not world.settle(), "refusal", "half a transaction stands")
    world.settle(several=True)


def move_session(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """A row goes to another session, with its position or to the end."""
    row = world.row(session_id, pick)
    if row is None:
        return
    target = world.sessions[pick.below(len(world.sessions))]
    changes = {"session_id": target} | ({"position": 0} if pick.below(2) else {})
    try:
        with transaction.atomic():
            Message.objects.filter(pk=row.id).update(**changes)
    except IntegrityError:
        require(not world.settle(), "refusal", "a refused statement left something behind")


def shift_all(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """One statement changes what is sent for every message of a person."""
    rows = Message.objects.filter(session_id=session_id, kind="user")
    rows.update(sent_parts=json.loads(world.text()) if pick.often() else None)


EDITS: dict[str, Operation] = {
    "edit: service": edit_by_service,
    "edit: twice": edit_twice,
    "edit: raw": edit_raw,
    "edit: update()": edit_by_update,
    "edit: save()": edit_by_instance,
    "edit: A-B-A": there_and_back,
    "silent save": save_silently,
    "stale save": save_stale,
    "state": change_state,
    "delete: service": delete_by_service,
    "delete: other": delete_otherwise,
    "delete: hidden": hide_then_delete,
    "undo and append": undo_and_append,
    "move: position": move_position,
    "move: swap": swap_positions,
    "move: session": move_session,
    "update all": shift_all,
}
