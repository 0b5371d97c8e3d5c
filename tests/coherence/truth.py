"""What the database really holds, read in one statement, and what must hold of its clock (I1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sessions_app.models import BLOCK, MODEL_KINDS
from sessions_app.signals import TranscriptRow
from tests.coherence.raw import MESSAGE, SESSION, RawClient

Baseline = tuple[int, int]

_SQL = (
    "SELECT s.id, s.revision, s.incarnation, s.removed_revision, s.message_count, s.next_block,"
    " m.id, m.position, m.kind, m.state, m.parts, m.sent_parts, m.revision"
    f" FROM {SESSION} s LEFT JOIN {MESSAGE} m ON m.session_id = s.id WHERE s.id IN ({{}})"
    " ORDER BY s.id, m.position, m.id"
)


class Violation(AssertionError):
    """An invariant does not hold. `invariant` is its short name."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant


def require(condition: object, invariant: str, message: str) -> None:
    if not condition:
        raise Violation(invariant, message)


@dataclass(frozen=True, slots=True)
class StoredSession:
    """One session as one snapshot saw it."""

    revision: int
    incarnation: int
    removed_revision: int
    message_count: int
    next_block: int
    rows: Mapping[UUID, TranscriptRow]
    """In order of position and id."""
    revisions: Mapping[UUID, int]

    @property
    def baseline(self) -> Baseline:
        return self.revision, self.incarnation

    @property
    def visible(self) -> tuple[TranscriptRow, ...]:
        """What a model sees, in order."""
        return tuple(
            row for row in self.rows.values() if row.state == "active" and row.kind in MODEL_KINDS
        )


class Truth:
    """The sessions of one world, now and at every revision that was ever committed."""

    def __init__(self, client: RawClient, sessions: Sequence[UUID]) -> None:
        self._client = client
        self._sessions = [client.value(one) for one in sessions]
        self._sql = _SQL.format(", ".join(["%s"] * len(sessions)))
        self._raw: list[tuple[Any, ...]] = []
        self._ids: dict[Any, UUID] = {}
        self.now: dict[UUID, StoredSession] = {}
        self.at: dict[tuple[UUID, Baseline], tuple[TranscriptRow, ...]] = {}
        self.look(several=True)

    def look(self, *, several: bool = False) -> bool:
        """Reads the database and holds it against the look before; whether anything differs.

        `several`: more than one change lies between, so that they may have undone each other.
        """
        raw = self._client.rows(self._sql, self._sessions)
        if raw == self._raw:
            return False
        before, self._raw = self.now, raw
        self.now = self._parse(raw)
        present = {row_id for stored in self.now.values() for row_id in stored.rows}
        for session_id, stored in self.now.items():
            self.at[session_id, stored.baseline] = stored.visible
            check_session(stored)
            earlier = before.get(session_id)
            if earlier is not None and earlier.incarnation == stored.incarnation:
                check_change(earlier, stored, present, several=several)
        return True

    def _parse(self, raw: Sequence[tuple[Any, ...]]) -> dict[UUID, StoredSession]:
        found: dict[UUID, StoredSession] = {}
        for values in raw:
            session_id = self._id(values[0])
            stored = found.get(session_id)
            if stored is None:
                stored = found[session_id] = StoredSession(*values[1:6], {}, {})
            if values[6] is not None:
                row = TranscriptRow(self._id(values[6]), *values[7:12])
                stored.rows[row.id] = row  # type: ignore[index]
                stored.revisions[row.id] = values[12]  # type: ignore[index]
        return found

    def _id(self, value: Any) -> UUID:
        if isinstance(value, UUID):
            return value
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = UUID(value)
        return found


def check_session(now: StoredSession) -> None:
    """What holds of one snapshot alone."""
    require(
        now.message_count == len(now.rows),
        "I1 count",
        f"message_count is {now.message_count}, rows are {len(now.rows)}",
    )
    highest = max((row.position for row in now.rows.values()), default=0)
    require(now.next_block > highest // BLOCK, "I1 next_block", f"{now.next_block} of {highest}")
    require(0 <= now.removed_revision <= now.revision, "I1 removal", "it is above the revision")
    require(now.incarnation != 0, "I1 incarnation", "the session has none")
    top = max(now.revisions.values(), default=0)
    require(top <= now.revision, "I1 row", f"a row is at {top}, its session at {now.revision}")
    active = [row.position for row in now.rows.values() if row.state == "active"]
    require(len(active) == len(set(active)), "order", "two active rows share a position")


def check_change(
    before: StoredSession, now: StoredSession, present: set[UUID], *, several: bool
) -> None:
    """What holds between two looks at one session in one incarnation; `present`: in any session."""
    require(now.revision >= before.revision, "I1 falls", f"{before.revision} -> {now.revision}")
    require(now.removed_revision >= before.removed_revision, "I1 removal", "it fell")
    require(now.next_block >= before.next_block, "I1 next_block", "it fell")
    changed = {
        key for key in now.rows.keys() | before.rows.keys()
        if now.rows.get(key) != before.rows.get(key)
    }  # fmt: skip
    moved = now.revision != before.revision
    require(moved or not changed, "I1 escape", f"{len(changed)} rows changed, the clock did not")
    require(changed or several or not moved, "I1 moves", "nothing visible changed, the clock did")
    for key, row in now.rows.items():
        if key in changed:
            fresh = now.revisions[key] > before.revision
            require(fresh, "I1 row", f"{row.kind} changed and stayed at {now.revisions[key]}")
        elif not several:
            same = now.revisions[key] == before.revisions[key]
            require(same, "I1 row", f"{row.kind} did not change and left {before.revisions[key]}")
    _check_removals(before, now, changed, present, several=several)


def _check_removals(
    before: StoredSession,
    now: StoredSession,
    changed: set[UUID],
    present: set[UUID],
    *,
    several: bool,
) -> None:
    needed = before.removed_revision
    for key in changed & before.rows.keys():
        old, new = before.rows[key], now.rows.get(key)
        moved = key in present if new is None else new.position != old.position
        if moved:
            needed = max(needed, before.revision + 1)
        elif new is None:
            active = old.state == "active"
            needed = max(needed, before.revision + 1 if active else before.revisions[key])
    require(
        now.removed_revision >= needed,
        "I1 removal",
        f"removed_revision is {now.removed_revision}, a removal asks for {needed}",
    )
    calm = several or needed > before.removed_revision
    require(
        calm or now.removed_revision == before.removed_revision,
        "I1 removal",
        f"it rose from {before.removed_revision} to {now.removed_revision} without a removal",
    )
