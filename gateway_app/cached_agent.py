"""One session's warm agent: the rows a model sees, encoded once, at a baseline.

Nothing here reads a database or touches an event loop.
"""

import hashlib
import logging
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from gateway_app.providers.base import Prompt, RequestSettings, Wire
from gateway_app.providers.rows import tool_calls, tool_result_of
from sessions_app.errors import Refusal
from sessions_app.models import BLOCK, MODEL_KINDS
from sessions_app.sentences import Sentence, say
from sessions_app.signals import TranscriptRow

logger = logging.getLogger(__name__)


class Verdict(StrEnum):
    """What the guard found before a request. Ordered from the best to the worst."""

    NEW = "new"
    REUSE = "reuse"
    CATCH_UP = "catch_up"
    RELOAD = "reload"
    REBUILD = "rebuild"
    REFUSE = "refuse"


class Reason(StrEnum):
    """Why a prefix changed, or why a request was refused."""

    NONE = ""
    REWRITTEN = "rewritten"
    COMPACTED = "compacted"
    RECONFIGURED = "reconfigured"
    ENDED = "ended"
    DELETED = "deleted"
    UNREADABLE = "unreadable"


class GuardRefused(Refusal):
    """The session cannot be answered; `reason` says why."""

    def __init__(self, reason: Reason, sentence: Sentence) -> None:
        super().__init__(sentence)
        self.reason = reason


Baseline = tuple[int, int]
"""(revision, incarnation)"""


@dataclass(frozen=True, slots=True)
class Profile:
    """How a session's agent is built: everything of a request but its messages."""

    config: tuple[str, int, str, str]
    provider: str
    model: str
    wire: Wire
    prompt: Prompt
    settings: RequestSettings
    signature: str
    """Changes when a request with the same messages would differ, or must not be shared."""
    window_tokens: int | None = None
    """What the model holds; None: not known."""


@dataclass(frozen=True, slots=True)
class SentRecord:
    """The last request of a session, as a cold process needs it: revision, rows, digest."""

    revision: int
    rows: int
    digest: str
    signature: str


@dataclass(slots=True)
class CachedRow:
    """One row a model sees. `piece` is its wire form; None: its parts cannot be read."""

    order: tuple[int, str]
    id: UUID
    piece: str | None
    calls: tuple[str, ...] = ()
    result_of: str | None = None


@dataclass
class CachedAgent:
    """One session's warm agent. Every method takes the lock; none reads the database."""

    session_id: UUID
    wire: Wire
    signature: str
    baseline: Baseline = (-1, 0)
    rows: list[CachedRow] = field(default_factory=list)
    sent: tuple[str, ...] | None = None
    """The messages of the last request; None: this process has sent none."""
    sent_signature: str = ""
    compacted: bool = False
    size_bytes: int = 0
    used_at: float = field(default_factory=time.monotonic)
    sent_generation: int = 0
    sent_revision: int = 0
    sent_incarnation: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    _orders: dict[UUID, tuple[int, str]] = field(default_factory=dict)
    _digest: Any = field(default_factory=hashlib.sha256)

    def apply(self, base: Baseline, to: Baseline, changed: Sequence[TranscriptRow]) -> bool:
        """The agent is at `to`, changed rows in their place; False, untouched, if not at `base`.

        `changed` must be every row that changed in between, as it stands at `to`.
        """
        with self.lock:
            if self.baseline != base:
                return False
            for row in changed:
                self._place(row)
            self.baseline = to
            return True

    def replace(self, base: Baseline, to: Baseline, rows: Sequence[TranscriptRow]) -> bool:
        """The agent holds exactly `rows`, at `to`; False, untouched, if it is not at `base`."""
        with self.lock:
            if self.baseline != base:
                return False
            self.rows, self._orders, self.size_bytes = [], {}, 0
            for row in rows:
                self._place(row)
            self.baseline = to
            return True

    def known(self, rows: Sequence[TranscriptRow]) -> frozenset[UUID]:
        """The ids among `rows` that the agent holds."""
        with self.lock:
            return frozenset(row.id for row in rows if row.id in self._orders)

    def _place(self, row: TranscriptRow) -> None:
        """Puts one row where its position says, or takes it out when a model does not see it."""
        if (order := self._orders.pop(row.id, None)) is not None:
            index = bisect_left(self.rows, order, key=_order)
            self.size_bytes -= len(self.rows[index].piece or "")
            del self.rows[index]
        if row.state == "compacted" or row.kind == "summary":
            self.compacted = True
        if row.state != "active" or row.kind not in MODEL_KINDS:
            return
        cached = self._encode(row)
        self.rows.insert(bisect_left(self.rows, cached.order, key=_order), cached)
        self._orders[row.id] = cached.order
        self.size_bytes += len(cached.piece or "")

    def _encode(self, row: TranscriptRow) -> CachedRow:
        order = (row.position, row.id.hex)
        try:
            return CachedRow(
                order, row.id, self.wire.encode(row), tool_calls(row), tool_result_of(row)
            )
        except ValueError:
            return CachedRow(order, row.id, None)

    def request(self, block: int | None) -> tuple[str, ...]:
        """The messages of a request: rows before the end of `block`, all if idle.

        Raises GuardRefused when one of them cannot be read.
        """
        with self.lock:
            end = len(self.rows)
            if block is not None:
                end = bisect_left(self.rows, ((block + 1) * BLOCK, ""), key=_order)
            rows = self.rows[:end]
        if any(row.calls or row.result_of for row in rows):
            rows = without_orphans(rows)
        pieces = tuple(row.piece for row in rows if row.piece is not None)
        if len(pieces) != len(rows):
            raise GuardRefused(
                Reason.UNREADABLE,
                say("A message of this conversation cannot be read. Ask an operator to mend it."),
            )
        return pieces

    def call_ids(self) -> frozenset[str]:
        """Those of all tool calls that the agent holds."""
        with self.lock:
            return frozenset(call for row in self.rows for call in row.calls)

    def forget_sent(self, incarnation: int) -> None:
        """What was sent before the session was deleted and restored is no request of this one."""
        with self.lock:
            if self.sent_incarnation != incarnation:
                self.sent, self.compacted = None, False

    def mark_sent(self, pieces: tuple[str, ...], revision: int, generation: int) -> SentRecord:
        """Remembers the request that is about to be sent; its record for a cold process."""
        with self.lock:
            kept = self.sent is not None and pieces[: len(self.sent)] == self.sent
            start = len(self.sent) if kept and self.sent is not None else 0
            digest = self._digest.copy() if kept else hashlib.sha256()
            extend_digest(digest, pieces[start:])
            self.sent, self._digest, self.compacted = pieces, digest, False
            self.sent_signature, self.sent_generation = self.signature, generation
            self.sent_revision, self.sent_incarnation = revision, self.baseline[1]
            return SentRecord(revision, len(pieces), digest.hexdigest(), self.signature)


def _order(row: CachedRow) -> tuple[int, str]:
    return row.order


def extend_digest(digest: Any, pieces: Sequence[str]) -> None:
    """Adds messages to a digest of a request, each with its length."""
    for piece in pieces:
        raw = piece.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)


def without_orphans(rows: Sequence[CachedRow]) -> list[CachedRow]:
    """The rows without tool calls that lack a result, and results that lack their call.

    A raw change can part the two, and a provider refuses such a history.
    """
    answered = {row.result_of for row in rows if row.result_of}
    whole = [row for row in rows if not row.calls or set(row.calls) <= answered]
    called = {call for row in whole for call in row.calls}
    kept = [row for row in whole if row.result_of is None or row.result_of in called]
    if len(kept) != len(rows):
        logger.warning("Left out parted tool calls", extra={"rows": len(rows) - len(kept)})
    return kept
