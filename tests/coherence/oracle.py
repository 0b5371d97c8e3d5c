"""What each request must be, by the database's rows and the request that was sent before (I7).

Written without a look at the cache's own code: rows, orphans, digests and verdicts are computed
here a second time.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from gateway_app.agent_cache import GuardedRequest
from gateway_app.cached_agent import CachedAgent, Profile
from gateway_app.providers.base import Wire
from sessions_app.models import BLOCK
from sessions_app.signals import TranscriptRow
from tests.coherence.truth import Violation, require


class Unreadable(Exception):
    """A row that the model must see cannot be encoded."""


@lru_cache(maxsize=65_536)
def encoded(wire: Wire, row: TranscriptRow) -> str | None:
    try:
        return wire.encode(row)
    except ValueError:
        return None


@lru_cache(maxsize=65_536)
def _calls(kind: str, text: str) -> tuple[frozenset[str], str | None]:
    """(ids of the calls a row makes, id of the call it answers)"""
    if kind not in {"assistant", "tool"}:
        return frozenset(), None
    parts = json.loads(text)
    if not isinstance(parts, list):
        return frozenset(), None
    made = frozenset(part["id"] for part in parts if part["type"] == "tool_call")
    answers = [part["callId"] for part in parts if part["type"] == "tool_result"]
    return (made, None) if kind == "assistant" else (frozenset(), answers[0] if answers else None)


def calls_of(row: TranscriptRow) -> tuple[frozenset[str], str | None]:
    return _calls(row.kind, row.parts if row.sent_parts is None else row.sent_parts)


def expected_pieces(
    visible: Sequence[TranscriptRow], wire: Wire, block: int | None
) -> tuple[str, ...]:
    """The messages of a request: visible rows before the end of the block, without parted calls."""
    rows = [row for row in visible if not block or row.position < (block + 1) * BLOCK]
    found: list[tuple[str | None, frozenset[str], str | None]] = []
    for row in rows:
        piece = encoded(wire, row)
        found.append((piece, *(calls_of(row) if piece is not None else (frozenset(), None))))
    answered = {result for _, _, result in found if result is not None}
    whole = [one for one in found if one[1] <= answered]
    made = {call for _, calls, _ in whole for call in calls}
    pieces = [piece for piece, _, result in whole if result is None or result in made]
    if None in pieces:
        raise Unreadable
    return tuple(piece for piece in pieces if piece is not None)


def digest_of(pieces: Sequence[str]) -> str:
    """The digest by which a cold process knows a request again."""
    whole = b"".join(b"%d:%b" % (len(raw), raw) for raw in (piece.encode() for piece in pieces))
    return hashlib.sha256(whole).hexdigest()


@dataclass(slots=True)
class SentRequest:
    """One request as it went out; `recorded` once its record stands in the database."""

    number: int
    pieces: tuple[str, ...]
    body: bytes
    signature: str
    agent: CachedAgent | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the oracle must know from before the guard ran. `wire`: None if no agent was warm."""

    wire: Wire | None
    baseline: tuple[int, int] | None
    revision: int
    incarnation: int
    raced: bool = False


class RequestOracle:
    """Keeps the last request of each session, byte for byte, and judges the next one."""

    def __init__(self) -> None:
        self.count = 0
        self._recorded: dict[UUID, SentRequest] = {}
        self._unrecorded: dict[UUID, list[SentRequest]] = {}

    def reborn(self, session_id: UUID, *, with_turns: bool) -> None:
        """The session was deleted and came back: what was sent before, its records must say."""
        self._unrecorded.pop(session_id, None)
        if not with_turns:
            self._recorded.pop(session_id, None)

    def recorded(self, session_id: UUID, sent: SentRequest) -> None:
        """The transaction that holds the request's record is committed."""
        self._recorded[session_id] = sent

    def previous(self, session_id: UUID, agent: CachedAgent | None) -> SentRequest | None:
        """The last request that the process with this agent can know of."""
        own = [one for one in self._unrecorded.get(session_id, []) if one.agent is agent]
        recorded = self._recorded.get(session_id)
        known = [*own, *([recorded] if recorded else [])]
        return max(known, key=lambda one: one.number) if known else None

    def judge(
        self,
        session_id: UUID,
        agent: CachedAgent | None,
        asked: Asked,
        guarded: GuardedRequest,
        profile: Profile,
        visible: Sequence[TranscriptRow],
        block: int | None,
    ) -> SentRequest:
        """The request is what it must be, and the verdict says how it came about."""
        try:
            pieces = expected_pieces(visible, profile.wire, block)
        except Unreadable as exc:
            raise Violation("refuse", "a request left out a row that cannot be read") from exc
        require(guarded.pieces == pieces, "I7 request", _difference(guarded.pieces, pieces))
        require(
            guarded.revision >= asked.revision,
            "I7 stale",
            f"read at {guarded.revision}, committed were {asked.revision}",
        )
        body = profile.wire.body(
            model=profile.model,
            prompt=profile.prompt,
            pieces=guarded.pieces,
            settings=profile.settings,
            session_id=session_id,
        )
        self._check_verdict(self.previous(session_id, agent), asked, guarded, profile, body)
        record = guarded.record
        told = (record.revision, record.rows, record.digest, record.signature)
        true = (guarded.revision, len(pieces), digest_of(pieces), profile.signature)
        require(told == true, "sent", f"the record says {told}, sent was {true}")
        self.count += 1
        sent = SentRequest(self.count, pieces, body, profile.signature, agent)
        self._unrecorded[session_id] = [
            one for one in self._unrecorded.get(session_id, []) if one.agent is not agent
        ] + [sent]
        return sent

    def _check_verdict(
        self,
        previous: SentRequest | None,
        asked: Asked,
        guarded: GuardedRequest,
        profile: Profile,
        body: bytes,
    ) -> None:
        said = (guarded.verdict.value, guarded.reason.value)
        if previous is None:
            require(said == ("new", ""), "verdict", f"{said} for the first request")
            return
        grown = guarded.pieces[: len(previous.pieces)] == previous.pieces
        if previous.signature != profile.signature:
            true = {("rebuild", "reconfigured")}
        elif not grown:
            true = {("rebuild", "rewritten"), ("rebuild", "compacted")}
        elif asked.wire is None:
            true = {("reload", "")}
        else:
            level = asked.baseline == (guarded.revision, asked.incarnation)
            moved = not level or asked.wire is not profile.wire
            true = {("catch_up", "")} if moved else {("reuse", "")}
            if asked.raced:
                true = {("catch_up", ""), ("reuse", ""), ("reload", "")}
        kind = "I7 false rebuild" if said[0] == "rebuild" and grown else "verdict"
        require(said in true, kind, f"{said}, but {true}")
        if said[0] != "rebuild":
            starts = body.startswith(previous.body[:-2])
            require(starts, "I7 prefix", f"{said}, and the bytes do not start with the last ones")


def _difference(got: Sequence[str], true: Sequence[str]) -> str:
    place = next(
        (i for i, pair in enumerate(zip(got, true, strict=False)) if pair[0] != pair[1]),
        min(len(got), len(true)),
    )
    shown: list[Any] = [list(one[place : place + 1]) for one in (got, true)]
    return f"{len(got)} messages, {len(true)} visible; at {place}: {shown[0]} for {shown[1]}"
