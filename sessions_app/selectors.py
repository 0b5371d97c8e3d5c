"""Every read that spans rows: the coherence guard's and the people's."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from sessions_app import database as db
from sessions_app.models import MODEL_KINDS, PERSON_KINDS, Message, Session
from sessions_app.signals import TranscriptRow

_SESSION: Final = Session._meta.db_table
_MESSAGE: Final = Message._meta.db_table
_CLOCK: Final = (
    "s.revision, s.incarnation, s.removed_revision, s.state, s.deleted_at, s.agent,"
    " s.agent_version, s.model, s.prompt_hash"
)
_CLOCK_WIDTH: Final = 9
_ROW: Final = "m.id, m.position, m.kind, m.state, m.parts, m.sent_parts"
_VISIBLE: Final = (
    "m.state = 'active' AND m.kind IN ("
    + ", ".join(f"'{kind}'" for kind in sorted(MODEL_KINDS))
    + ")"
)


@dataclass(frozen=True, slots=True)
class SessionClock:
    """A session's clock and what decides how its agent is built, read in one statement."""

    revision: int
    incarnation: int
    removed_revision: int
    ended: bool
    deleted: bool
    config: tuple[str, int, str, str]
    """(agent, agent version, model, prompt hash)"""


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """Rows of one session together with the clock they belong to: one snapshot."""

    clock: SessionClock
    rows: tuple[TranscriptRow, ...]
    summarised_at: int = 0
    """The highest revision of a summary among the rows; 0: none."""


def _clock(values: Sequence[Any]) -> SessionClock:
    revision, incarnation, removed, state, deleted_at, *config = values
    return SessionClock(
        revision=revision,
        incarnation=incarnation,
        removed_revision=removed,
        ended=state != "active",
        deleted=deleted_at is not None,
        config=(config[0], config[1], config[2], config[3]),
    )


def read_clock(session_id: UUID) -> SessionClock | None:
    """The session's clock, by one indexed read; None if there is no such session."""
    found = db.rows(f"SELECT {_CLOCK} FROM {_SESSION} s WHERE s.id = %s", [db.db_uuid(session_id)])
    return _clock(found[0]) if found else None


def read_changed(session_id: UUID, after_revision: int) -> LoadedRows | None:
    """The clock and every row that changed after a revision, in one statement."""
    return _load(session_id, "m.revision > %s", [after_revision])


def read_visible(session_id: UUID) -> LoadedRows | None:
    """The clock and every row a model sees, in position order, in one statement."""
    return _load(session_id, _VISIBLE, [])


def _load(session_id: UUID, condition: str, params: list[Any]) -> LoadedRows | None:
    found = db.rows(
        f"SELECT {_CLOCK}, {_ROW}, m.revision FROM {_SESSION} s"
        f" LEFT JOIN {_MESSAGE} m ON m.session_id = s.id AND {condition}"
        " WHERE s.id = %s ORDER BY m.position, m.id",
        [*params, db.db_uuid(session_id)],
    )
    if not found:
        return None
    rows = [row[_CLOCK_WIDTH:] for row in found if row[_CLOCK_WIDTH] is not None]
    return LoadedRows(
        clock=_clock(found[0][:_CLOCK_WIDTH]),
        rows=tuple(TranscriptRow(db.to_uuid(row[0]), *row[1:6]) for row in rows),
        summarised_at=max((row[6] for row in rows if row[2] == "summary"), default=0),
    )


def older_than(field: str, moment: datetime, pk: object) -> Q:
    """The rows after (moment, pk) in a list that runs from the newest to the oldest.

    SQLite's own clock writes three digits of a second where Django writes six, and compares text:
    ".123" < ".123000". So "before" is said by the microsecond before.
    """
    before = moment - timedelta(microseconds=1)
    return Q(**{f"{field}__lte": moment}) & (Q(**{f"{field}__lte": before}) | Q(pk__lt=pk))


def visible_to_person() -> Q:
    """The condition by which a person sees a row of their transcript."""
    return Q(kind__in=PERSON_KINDS) & ~Q(state=Message.State.HIDDEN)
