"""The tree of a transcript: which rows stand in for one another, what a change of branch moves.

A row hangs on the visible row before it when it was written. Rows of different turns that hang on
the same row are alternatives: an edit or a retry put the later one in the place of the earlier. A
row of no turn, which an operator or another program wrote, goes with the alternative before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Q

from sessions_app.errors import MessageInvalid
from sessions_app.models import Message
from sessions_app.sentences import say

_ON_A_BRANCH: Final = ("active", "branched")
_SHOWN: Final = ("active", "compacted")


@dataclass(frozen=True, slots=True)
class TreeRow:
    """What of a row decides its place in the tree."""

    id: UUID
    parent_id: UUID | None
    position: int
    state: str
    turn_id: UUID | None


_FIELDS: Final = ("pk", "parent_id", "position", "state", "turn_id")
"""A row's columns, in the order of `TreeRow`."""


@dataclass(frozen=True, slots=True)
class BranchChange:
    """The rows that leave and that return, and the position from which the transcript differs."""

    off: list[UUID]
    on: list[UUID]
    from_position: int


def read_change(session_id: UUID, message_id: UUID) -> BranchChange:
    """What it takes to show the branch with the row. Raises MessageInvalid: it is on no other."""
    found = Message.objects.filter(session_id=session_id).order_by("position", "pk")
    rows = [TreeRow(*row) for row in found.values_list(*_FIELDS)]
    chosen = next((row for row in rows if row.id == message_id), None)
    if chosen is None or chosen.state != "branched":
        raise MessageInvalid(say("This message is not on another branch."))
    return _change_to(chosen, rows)


def read_branches(session_id: UUID, messages: Iterable[Message]) -> dict[UUID, list[UUID]]:
    """By row: the first rows of the branches that fork there, its own among them, oldest first.

    Only where there are several. Those that are not shown are read, however far away they stand.
    """
    mine = {row.pk: TreeRow(*(getattr(row, name) for name in _FIELDS)) for row in messages}
    parents = {row.parent_id for row in mine.values()}
    on = Q(parent_id__in=parents - {None})
    found = Message.objects.filter(
        on | Q(parent_id=None) if None in parents else on, session_id=session_id, state="branched"
    )
    rows = mine | {row[0]: TreeRow(*row) for row in found.values_list(*_FIELDS)}
    children: dict[UUID | None, list[TreeRow]] = {}
    for row in sorted(rows.values(), key=lambda row: (row.position, row.id)):
        if row.turn_id is not None and row.state in _ON_A_BRANCH:
            children.setdefault(row.parent_id, []).append(row)
    branches: dict[UUID, list[UUID]] = {}
    for siblings in children.values():
        heads = [group[0] for group in _alternatives(siblings)]
        if len(heads) > 1 and sum(row.state == "active" for row in heads) < 2:
            ids = [row.id for row in heads]
            branches |= dict.fromkeys(ids, ids)
    return branches


def _alternatives(children: Sequence[TreeRow]) -> list[list[TreeRow]]:
    """Rows on the same row, in order, as groups: the rows of one turn, and those of none after."""
    groups: list[list[TreeRow]] = []
    for row in children:
        turn_id = groups[-1][0].turn_id if groups else None
        if turn_id is None or row.turn_id not in (None, turn_id):
            groups.append([])
        groups[-1].append(row)
    return groups


def _change_to(chosen: TreeRow, rows: Sequence[TreeRow]) -> BranchChange:
    above = _rows_above(rows)
    children: dict[UUID | None, list[TreeRow]] = {}
    for row in rows:
        parent = above[row.id]
        children.setdefault(parent.id if parent else None, []).append(row)
    shown: set[UUID] = set()
    at, fork = chosen, above[chosen.id]
    _show(at, children, shown)
    while True:
        groups = _alternatives(children[fork.id if fork else None])
        for mate in next(group for group in groups if at in group):
            if mate is not at and mate.state != "active":
                _show(mate, children, shown)
        if fork is None or fork.state in _SHOWN:
            break
        shown.add(fork.id)
        at, fork = fork, above[fork.id]
    after = fork.position if fork else 0
    on = [row for row in rows if row.state == "branched" and row.id in shown]
    off = [
        row
        for row in rows
        if row.state == "active" and row.position > after and row.id not in shown
    ]
    return BranchChange(
        off=[row.id for row in off],
        on=[row.id for row in on],
        from_position=min(row.position for row in (*off, *on)),
    )


def _rows_above(rows: Sequence[TreeRow]) -> dict[UUID, TreeRow | None]:
    """The row that each hangs on; None: the first one. A raw writer names none, or a wrong one:
    such a row hangs on the one before it. What hung on a row that was deleted hangs together."""
    known = {row.id: row for row in rows}
    above: dict[UUID, TreeRow | None] = {}
    instead: dict[UUID, TreeRow | None] = {}
    before: TreeRow | None = None
    for row in rows:
        parent = known.get(row.parent_id) if row.parent_id else None
        if parent is not None and parent.position < row.position:
            above[row.id] = parent
        elif parent is None and row.parent_id:
            above[row.id] = instead.setdefault(row.parent_id, before)
        else:
            first = row.parent_id is None and row.turn_id is not None
            above[row.id] = None if first else before
        before = row
    return above


def _show(row: TreeRow, children: dict[UUID | None, list[TreeRow]], shown: set[UUID]) -> None:
    """The row and what follows it: where that forks, the newest branch."""
    todo = [row]
    while todo:
        at = todo.pop()
        shown.add(at.id)
        groups = _alternatives(children.get(at.id, []))
        standing = [group for group in groups if any(r.state in _ON_A_BRANCH for r in group)]
        todo += (standing or groups or [[]])[-1]
