"""The signals that reach up a layer, sent after a commit and only then."""

from dataclasses import dataclass
from uuid import UUID

from django.dispatch import Signal

transcript_committed = Signal()
"""A service's transaction committed rows of one session; `commit` is a TranscriptCommit."""

session_listed = Signal()
"""What a list says of the session `session_id` may be another: made, renamed, deleted, back."""


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    """A message as the model side needs it: ids, order, and its JSON as exact text."""

    id: UUID
    position: int
    kind: str
    state: str
    parts: str
    sent_parts: str | None


@dataclass(frozen=True, slots=True)
class TranscriptCommit:
    """What one transaction did to one session's transcript.

    `from_revision` was read under the session's lock before its first row, `revision` after its
    last; `rows` are all rows it inserted or changed, as they stood at `revision`. A transaction
    that removed rows says so in `removed`: its change cannot be patched from `rows`.
    """

    session_id: UUID
    incarnation: int
    from_revision: int
    revision: int
    rows: tuple[TranscriptRow, ...]
    removed: bool = False
