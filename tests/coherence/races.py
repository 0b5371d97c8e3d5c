"""Writes of others between the guard's own reads, with receivers that run early or late."""

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from sessions_app.services import append_messages, edit_message
from sessions_app.signals import TranscriptCommit, TranscriptRow
from sessions_app.transcript import NewMessage
from tests.coherence.edits import words
from tests.coherence.lives import reconfigure
from tests.coherence.processes import Process
from tests.coherence.raw import MESSAGE
from tests.coherence.turns import ask, begin, refuse, whole_step
from tests.coherence.world import Pick, World, suppress_refusals

MOVES = ("", "own edit", "own append", "raw edit", "raw delete", "raw insert", "raw hide",
         "deliver", "reconfigure")  # fmt: skip


PATTERNS = (
    ("", "", "", "deliver, own edit"),
    ("", "", "", "deliver, own append"),
    ("", "deliver, own append", "", ""),
    ("raw edit", "", "", "raw edit, deliver"),
    ("raw edit", "raw edit", "own edit, deliver", "raw edit"),
    ("raw edit", "", "", "raw delete"),
    ("", "raw insert", "", "raw insert"),
)
"""Races that are known to hurt; the others are drawn."""


def race(
    world: World, session_id: UUID, process: Process, pick: Pick, moves: Sequence[str]
) -> None:
    """A request whose guard is raced: moves before and after each of its reads.

    The moves fall on one row again and again. Commits of the guard's own process made just before
    are not heard yet: their receivers run at a `deliver`, or after the request.
    """
    ready = ready_to_ask(world, session_id, process, pick)
    row = world.row(session_id, pick)
    if not ready or row is None:
        return
    process, world.turns[session_id].quiet = world.turns[session_id].process, False
    with world.signals.held() as late:
        for _ in range(pick.below(2) + any("deliver" in names for names in moves)):
            _own_write(world, session_id, row, pick)
    move = partial(_move, world, session_id, process, row, pick, late)
    world.seam.arm([partial(_all, move, names) if names else None for names in moves])
    try:
        if not ask(world, session_id, raced=True):
            world.seam.disarm()
            refuse(world, session_id)
    finally:
        world.seam.disarm()
    while late:
        world.signals.deliver(process, late.pop(0))
        world.settle()


def _all(move: Callable[[str], None], names: str) -> None:
    for name in names.split(", "):
        move(name)


def ready_to_ask(world: World, session_id: UUID, process: Process, pick: Pick) -> bool:
    """A turn is open and its next request is due."""
    if session_id not in world.turns:
        begin(world, session_id, process, pick)
    for _ in range(3):
        turn = world.turns.get(session_id)
        if turn is None or turn.orphaned:
            return False
        if not turn.unanswered:
            return True
        whole_step(world, session_id, pick)
    return False


def spoil(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """A row becomes unreadable: no request goes out without it; then it is mended."""
    if not ready_to_ask(world, session_id, process, pick):
        return
    row = world.row(session_id, pick, state="active")
    if row is None:
        return
    sql = f"UPDATE {MESSAGE} SET parts = %s, sent_parts = %s WHERE id = %s"
    world.client.run(sql, ['{"no":"list"}', None, row.id])
    world.settle()
    ask(world, session_id)
    world.client.run(sql, [row.parts, row.sent_parts, row.id])
    world.settle()


def _own_write(world: World, session_id: UUID, row: TranscriptRow, pick: Pick) -> None:
    """A service writes; who hears it is the caller's affair."""
    with suppress_refusals(world):
        if pick.below(2):
            text = words(world, row, pick)
            edit_message(session_id=session_id, message_id=row.id, parts=text)
        else:
            message = NewMessage(kind="operator", parts=world.text())
            append_messages(session_id=session_id, messages=[message])
    world.settle()


def _move(
    world: World,
    session_id: UUID,
    process: Process,
    row: TranscriptRow,
    pick: Pick,
    late: list[TranscriptCommit],
    name: str,
) -> None:
    world.count(f"race: {name}")
    stands = row.id in world.stored(session_id).rows
    client = world.client
    if name == "deliver" and late:
        world.signals.deliver(process, late.pop(0))
    elif name == "own edit" and stands:
        with world.own(process, session_id):
            text = words(world, row, pick)
            edit_message(session_id=session_id, message_id=row.id, parts=text)
    elif name == "own append":
        with world.own(process, session_id):
            message = NewMessage(kind="operator", parts=world.text())
            append_messages(session_id=session_id, messages=[message])
    elif name == "raw edit":
        text = words(world, row, pick)
        client.run(f"UPDATE {MESSAGE} SET parts = %s WHERE id = %s", [text, row.id])
    elif name == "raw delete":
        client.run(f"DELETE FROM {MESSAGE} WHERE id = %s", [row.id])
    elif name == "raw hide":
        sql = f"UPDATE {MESSAGE} SET state = 'hidden' WHERE id = %s AND kind <> 'tool'"
        client.run(sql, [row.id])
    elif name == "raw insert":
        sql = f"INSERT INTO {MESSAGE} (session_id, kind, parts) VALUES (%s, 'user', %s)"
        client.run(sql, [session_id, world.text()])
    elif name == "reconfigure":
        reconfigure(world, session_id, process, pick)
    world.settle()
