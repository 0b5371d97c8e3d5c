"""The agent cache of a process, and the coherence guard that keeps it right.

A cached agent is at a baseline: the revision and the incarnation of the transcript it contains.
Two paths change it, both refused unless its baseline is the one the change starts from:

* the receiver of `transcript_committed` (this process's own commits), which never reads;
* the guard, before every model call, which reads the clock and, if it moved, what changed.

Signals are speed; the guard is correctness. Receivers run on database threads, so each agent has a
lock, and nothing here touches an event loop.
"""

import hashlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from gateway_app.cached_agent import (
    CachedAgent,
    GuardRefused,
    Profile,
    Reason,
    SentRecord,
    Verdict,
    extend_digest,
)
from gateway_app.context_window import overfull
from gateway_app.providers.base import ContextFull
from sessions_app.selectors import LoadedRows, SessionClock, read_changed, read_clock, read_visible
from sessions_app.sentences import say
from sessions_app.signals import TranscriptCommit, TranscriptRow

_TRIES: Final = 5
MAX_NEWS: Final = 50
"""More rows than these are not told one by one: clients read the transcript again."""


class ConfigChanged(Exception):
    """The session's agent or model is not that of the profile: load the profile anew."""


@dataclass(frozen=True, slots=True)
class GuardedRequest:
    """A request's messages and what the guard found out about them."""

    verdict: Verdict
    reason: Reason
    baseline: int | None
    """The revision the cached agent had before; None: it was not cached."""
    revision: int
    pieces: tuple[str, ...]
    call_ids: frozenset[str]
    """Of the tool calls that the conversation holds."""
    record: SentRecord | None
    """What a cold process needs to know of it; None: it is not to be sent."""
    news: tuple[UUID, ...] = ()
    """Rows that this process had not met before, if they are few."""
    rewritten_from: int | None = None
    """The first position from which clients must read again; None: nowhere. Others changed there
    what this process had, or wrote too many rows to tell one by one."""
    overfull: ContextFull | None = None
    """Why it is not to be sent. Then it is no request: the one before stays the last one."""


@dataclass(frozen=True, slots=True)
class CacheCensus:
    """What a cache holds: agents, bytes, and revisions by session."""

    agents: int
    size_bytes: int
    baselines: dict[UUID, int]


@dataclass(frozen=True, slots=True)
class _Synchronised:
    """What bringing an agent up to date took."""

    clock: SessionClock
    moved: bool = False
    loaded: LoadedRows | None = None
    news: tuple[UUID, ...] = ()
    rewritten_from: int | None = None


def _starts_with(
    pieces: tuple[str, ...], record: SentRecord | None, sent: tuple[str, ...] | None
) -> bool:
    """Whether the request starts with the one before: by its stored digest, or by itself."""
    if record is None:
        return sent is not None and pieces[: len(sent)] == sent
    if len(pieces) < record.rows:
        return False
    digest = hashlib.sha256()
    extend_digest(digest, pieces[: record.rows])
    return bool(digest.hexdigest() == record.digest)


def _patched(
    clock: SessionClock, rows: tuple[TranscriptRow, ...], known: frozenset[UUID]
) -> _Synchronised:
    news = [row for row in rows if row.id not in known and row.state == "active"]
    again = [row.position for row in rows if row.id in known]
    if len(news) > MAX_NEWS:
        again += [row.position for row in news]
        news = []
    return _Synchronised(
        clock,
        moved=True,
        news=tuple(row.id for row in news),
        rewritten_from=min(again, default=None),
    )


class AgentCache:
    """The warm agents of one process, by session id; bounded by entries, idle time and bytes."""

    def __init__(self, *, entries: int, idle_s: float, size_bytes: int) -> None:
        self.entries, self.idle_s, self.size_bytes = entries, idle_s, size_bytes
        self._agents: OrderedDict[UUID, CachedAgent] = OrderedDict()
        self._pins: Counter[UUID] = Counter()
        self._lock = threading.Lock()
        self.verdicts: dict[tuple[str, str], int] = {}
        self.evictions = 0
        """How many agents were dropped, for whatever reason."""

    def __len__(self) -> int:
        return len(self._agents)

    def get(self, session_id: UUID) -> CachedAgent | None:
        """The session's warm agent, now the most recently used."""
        with self._lock:
            agent = self._agents.get(session_id)
            if agent is not None:
                self._agents.move_to_end(session_id)
                agent.used_at = time.monotonic()
            return agent

    def pin(self, session_id: UUID) -> None:
        """A run uses the session's agent, now or soon: it is not evicted until `unpin`."""
        with self._lock:
            self._pins[session_id] += 1

    def unpin(self, session_id: UUID) -> None:
        with self._lock:
            self._pins[session_id] -= 1
            if self._pins[session_id] <= 0:
                del self._pins[session_id]

    def evict(self, session_id: UUID) -> bool:
        """Drops one agent, unless it runs."""
        with self._lock:
            dropped = None if session_id in self._pins else self._agents.pop(session_id, None)
            self.evictions += dropped is not None
        return dropped is not None  # it is freed here, off the lock

    def sweep(self) -> int:
        """Drops what is idle or over the bounds, least recently used first; how many."""
        dropped: list[CachedAgent] = []
        with self._lock:
            total = sum(agent.size_bytes for agent in self._agents.values())
            oldest = time.monotonic() - self.idle_s
            for session_id, agent in list(self._agents.items()):
                over = len(self._agents) > self.entries or total > self.size_bytes
                if session_id not in self._pins and (over or agent.used_at < oldest):
                    total -= agent.size_bytes
                    dropped.append(self._agents.pop(session_id))
            self.evictions += len(dropped)
        return len(dropped)

    def evict_idle(self) -> int:
        """Drops every agent that no run uses; how many."""
        with self._lock:
            idle = [session_id for session_id in self._agents if session_id not in self._pins]
            dropped = [self._agents.pop(session_id) for session_id in idle]
            self.evictions += len(dropped)
        return len(dropped)  # they are freed here, off the lock

    def census(self, limit: int) -> CacheCensus:
        """How much is cached, and at which revision the `limit` agents used last stand."""
        with self._lock:
            agents = list(self._agents.items())
        return CacheCensus(
            agents=len(agents),
            size_bytes=sum(agent.size_bytes for _, agent in agents),
            baselines={
                session_id: agent.baseline[0]
                for session_id, agent in agents[-limit:]
                if agent.baseline[0] >= 0
            },
        )

    def rebaseline(self, commit: TranscriptCommit) -> bool:
        """Applies one of this process's own commits by compare-and-advance; False if no fit."""
        if commit.removed:
            return False
        with self._lock:
            agent = self._agents.get(commit.session_id)
        return agent is not None and agent.apply(
            (commit.from_revision, commit.incarnation),
            (commit.revision, commit.incarnation),
            commit.rows,
        )

    def guard(
        self,
        session_id: UUID,
        profile: Profile,
        *,
        block: int | None,
        generation: int,
        last_sent: Callable[[UUID], SentRecord | None],
        window_tokens: int | None = None,
    ) -> GuardedRequest:
        """The messages of the next request, coherent with the database as it is now.

        `block` and `generation` are the run's. `last_sent` reads the stored record of the session's
        last request; it is asked only where this process did not send that request itself.
        `window_tokens` is what the model's server told of its window.
        Sync; reads on the current thread's connection, in autocommit: one statement when nothing
        moved, two when rows changed. Raises GuardRefused, ConfigChanged.
        """
        try:
            return self._guarded(session_id, profile, block, generation, last_sent, window_tokens)
        except GuardRefused as exc:
            self._count(Verdict.REFUSE, exc.reason)
            raise

    def _guarded(
        self,
        session_id: UUID,
        profile: Profile,
        block: int | None,
        generation: int,
        last_sent: Callable[[UUID], SentRecord | None],
        window_tokens: int | None,
    ) -> GuardedRequest:
        agent, before = self._agent_of(session_id, profile)
        cold = before is None
        now = self._synchronise(agent, profile)
        agent.forget_sent(now.clock.incarnation)
        with agent.lock:  # a receiver may have advanced it: the pieces are of its own revision
            pieces, revision = agent.request(block), agent.baseline[0]
            call_ids = agent.call_ids()
        verdict, reason = self._judge(
            agent, pieces, now.loaded, cold=cold, moved=now.moved,
            record=self._record_of_others(agent, generation, last_sent),
        )  # fmt: skip
        refused = overfull(profile, pieces, told=window_tokens)
        if refused is None:
            self._count(verdict, reason)
        return GuardedRequest(
            verdict=verdict,
            reason=reason,
            baseline=before,
            revision=revision,
            pieces=pieces,
            call_ids=call_ids,
            record=None if refused else agent.mark_sent(pieces, revision, generation),
            news=now.news,
            rewritten_from=None if cold else now.rewritten_from,
            overfull=refused,
        )

    def _agent_of(self, session_id: UUID, profile: Profile) -> tuple[CachedAgent, int | None]:
        """The session's agent, built as the profile says; the revision it had, None if cold."""
        agent = self.get(session_id)
        if agent is None:
            agent = self._admit(CachedAgent(session_id, profile.wire, profile.signature))
        # never loaded: new here, or ConfigChanged came first
        before = None if agent.baseline[0] < 0 else agent.baseline[0]
        if agent.wire is not profile.wire:
            with agent.lock:
                agent.wire, agent.baseline = profile.wire, (-1, 0)
        agent.signature = profile.signature
        return agent, before

    def _admit(self, agent: CachedAgent) -> CachedAgent:
        with self._lock:
            kept = self._agents.setdefault(agent.session_id, agent)
        self.sweep()
        return kept

    def _synchronise(self, agent: CachedAgent, profile: Profile) -> _Synchronised:
        """The agent is at the clock that is returned, patched or loaded."""
        for tried in range(_TRIES):
            clock = self._checked(read_clock(agent.session_id), profile)
            base = agent.baseline
            if base == (clock.revision, clock.incarnation):
                return _Synchronised(clock)
            patch = base[1] == clock.incarnation and clock.removed_revision <= base[0]
            # a receiver may advance the agent between reading and applying: then look again,
            # and hold it still for the last try
            if tried == _TRIES - 1:
                agent.lock.acquire()
            try:
                base = agent.baseline
                found = (
                    read_changed(agent.session_id, base[0])
                    if patch
                    else read_visible(agent.session_id)
                )
                clock = self._checked(found.clock if found else None, profile)
                assert found is not None
                to = (clock.revision, clock.incarnation)
                if patch and (base[1] != clock.incarnation or clock.removed_revision > base[0]):
                    continue
                if to == base:
                    return _Synchronised(clock)
                known = agent.known(found.rows)
                if patch and agent.apply(base, to, found.rows):
                    return _patched(clock, found.rows, known)
                if not patch and agent.replace(base, to, found.rows):
                    return _Synchronised(clock, moved=True, loaded=found, rewritten_from=0)
            finally:
                if tried == _TRIES - 1:
                    agent.lock.release()
        raise GuardRefused(
            Reason.UNREADABLE,
            say("This conversation changes too fast to be read. Send again."),
        )

    def _checked(self, clock: SessionClock | None, profile: Profile) -> SessionClock:
        if clock is None or clock.deleted:
            raise GuardRefused(Reason.DELETED, say("This conversation was deleted."))
        if clock.ended:
            raise GuardRefused(Reason.ENDED, say("This conversation has ended."))
        if clock.config != profile.config:
            raise ConfigChanged
        return clock

    def _record_of_others(
        self,
        agent: CachedAgent,
        generation: int,
        last_sent: Callable[[UUID], SentRecord | None],
    ) -> SentRecord | None:
        """The stored record, where another process (or an earlier life) may have sent last."""
        if agent.sent is not None and generation - agent.sent_generation <= 1:
            return None
        record = last_sent(agent.session_id)
        # another process may have held the session without sending, or this one was fenced
        # before its own record was stored: then this process still knows the last request
        own = agent.sent is not None and (record is None or record.revision < agent.sent_revision)
        return None if own else record

    def _judge(
        self,
        agent: CachedAgent,
        pieces: tuple[str, ...],
        loaded: LoadedRows | None,
        *,
        cold: bool,
        moved: bool,
        record: SentRecord | None,
    ) -> tuple[Verdict, Reason]:
        """Names what happened, by comparing the new request with the one that was sent before."""
        if record is None and agent.sent is None:
            return Verdict.NEW, Reason.NONE
        signature = record.signature if record else agent.sent_signature
        if signature != agent.signature:
            return Verdict.REBUILD, Reason.RECONFIGURED
        if not _starts_with(pieces, record, agent.sent):
            summarised = bool(record and loaded and loaded.summarised_at > record.revision)
            compacted = summarised or (agent.sent is not None and agent.compacted)
            return Verdict.REBUILD, Reason.COMPACTED if compacted else Reason.REWRITTEN
        if cold:
            return Verdict.RELOAD, Reason.NONE
        return (Verdict.CATCH_UP if moved else Verdict.REUSE), Reason.NONE

    def _count(self, verdict: Verdict, reason: Reason) -> None:
        with self._lock:
            key = (verdict.value, reason.value)
            self.verdicts[key] = self.verdicts.get(key, 0) + 1
