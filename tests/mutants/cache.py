"""Faults of the cached agent, the guard and the receivers."""

from bisect import bisect_left
from dataclasses import replace
from typing import Any
from uuid import UUID

from gateway_app import agent_cache, cached_agent, receivers
from gateway_app.agent_cache import AgentCache
from gateway_app.cached_agent import CachedAgent, GuardRefused, Reason
from sessions_app import selectors
from sessions_app.models import BLOCK, Session
from sessions_app.sentences import say
from tests.mutants.catalogue import mutant, patch


@mutant("receiver without compare")
def _() -> None:
    def rebaseline(self: AgentCache, commit: Any) -> bool:
        agent = self._agents.get(commit.session_id)
        if agent is None or commit.removed:
            return False
        to = (commit.revision, commit.incarnation)
        return agent.apply(agent.baseline, to, commit.rows)

    AgentCache.rebaseline = rebaseline  # type: ignore[method-assign]


@mutant("rebaseline re-reads the live revision")
def _() -> None:
    def rebaseline(self: AgentCache, commit: Any) -> bool:
        agent, clock = self._agents.get(commit.session_id), selectors.read_clock(commit.session_id)
        if agent is None or clock is None:
            return False
        return agent.apply(agent.baseline, (clock.revision, clock.incarnation), commit.rows)

    AgentCache.rebaseline = rebaseline  # type: ignore[method-assign]


@mutant("receiver applies commits that removed rows")
def _() -> None:
    def rebaseline(self: AgentCache, commit: Any) -> bool:
        agent = self._agents.get(commit.session_id)
        return agent is not None and agent.apply(
            (commit.from_revision, commit.incarnation),
            (commit.revision, commit.incarnation),
            commit.rows,
        )

    AgentCache.rebaseline = rebaseline  # type: ignore[method-assign]


@mutant("receiver disconnected")
def _() -> None:
    receivers.rebaseline.__code__ = (lambda *, commit, **_: None).__code__


@mutant("guard applies without compare")
def _() -> None:
    """The guard's call alone: receivers go on comparing."""
    real = CachedAgent.apply
    CachedAgent.apply = (  # type: ignore[method-assign]
        lambda self, base, to, changed: real(self, self.baseline, to, changed)
    )

    def rebaseline(self: AgentCache, commit: Any) -> bool:
        agent = self._agents.get(commit.session_id)
        if agent is None or commit.removed:
            return False
        base = (commit.from_revision, commit.incarnation)
        return real(agent, base, (commit.revision, commit.incarnation), commit.rows)

    AgentCache.rebaseline = rebaseline  # type: ignore[method-assign]


_WHOLE = (
    "a load is one whole snapshot, only a guard can bring an agent past the removal that asked for"
    " it, and one run asks at a time: there is nothing newer to be overwritten"
)


@mutant("guard loads without compare", harmless=dict.fromkeys(("sqlite", "postgresql"), _WHOLE))
def _() -> None:
    real = CachedAgent.replace
    CachedAgent.replace = (  # type: ignore[method-assign]
        lambda self, base, to, rows: real(self, self.baseline, to, rows)
    )


@mutant("row count as token")
def _() -> None:
    """As the known system does: as many rows as before means that nothing happened."""

    def counted(session_id: UUID) -> int:
        found = Session.objects.filter(pk=session_id).values_list("message_count", flat=True)
        return int(found[0])

    def synchronise(real: Any) -> Any:
        def wrapped(self: AgentCache, agent: CachedAgent, profile: Any) -> Any:
            clock = self._checked(agent_cache.read_clock(agent.session_id), profile)
            token = (counted(agent.session_id), clock.incarnation)
            if agent.__dict__.get("token") == token and agent.wire is profile.wire:
                return agent_cache._Synchronised(replace(clock, revision=agent.baseline[0]))
            found = real(self, agent, profile)
            agent.__dict__["token"] = token
            return found

        return wrapped

    def rebaseline(real: Any) -> Any:
        def wrapped(self: AgentCache, commit: Any) -> bool:
            fits = real(self, commit)
            if fits:
                token = (counted(commit.session_id), commit.incarnation)
                self._agents[commit.session_id].__dict__["token"] = token
            return bool(fits)

        return wrapped

    patch(AgentCache, "_synchronise", synchronise)
    patch(AgentCache, "rebaseline", rebaseline)


@mutant("guard ignores removed_revision")
def _() -> None:
    for name in ("read_clock", "read_changed", "read_visible"):
        patch(agent_cache, name, _without_removals)


def _without_removals(read: Any) -> Any:
    def wrapped(*args: Any) -> Any:
        found = read(*args)
        if found is None:
            return None
        if hasattr(found, "clock"):
            return replace(found, clock=replace(found.clock, removed_revision=0))
        return replace(found, removed_revision=0)

    return wrapped


@mutant("two reads, session row first")
def _() -> None:
    """The rows of a later moment under the clock of an earlier one."""

    def read_changed(session_id: UUID, after: int) -> Any:
        clock = agent_cache.read_clock(session_id)
        found = selectors.read_changed(session_id, after)
        return found and clock and replace(found, clock=clock)

    agent_cache.read_changed = read_changed


@mutant("two reads, rows first")
def _() -> None:
    def read_changed(session_id: UUID, after: int) -> Any:
        found = selectors.read_changed(session_id, after)
        clock = agent_cache.read_clock(session_id)
        return found and clock and replace(found, clock=clock)

    agent_cache.read_changed = read_changed


@mutant("the clock is read once and believed")
def _() -> None:
    """`to` is what the first read said, though the second read saw more."""
    last: dict[UUID, Any] = {}

    def keep(read: Any) -> Any:
        def wrapped(session_id: UUID) -> Any:
            last[session_id] = read(session_id)
            return last[session_id]

        return wrapped

    def believe(read: Any) -> Any:
        def wrapped(session_id: UUID, *after: int) -> Any:
            found = read(session_id, *after)
            return found and replace(found, clock=last[session_id])

        return wrapped

    patch(agent_cache, "read_clock", keep)
    patch(agent_cache, "read_changed", believe)
    patch(agent_cache, "read_visible", believe)


@mutant("rows are appended, not put in order")
def _() -> None:
    def place(self: CachedAgent, row: Any) -> None:
        self.rows[:] = [one for one in self.rows if one.id != row.id]
        self._orders.pop(row.id, None)
        if row.state == "active" and row.kind in cached_agent.MODEL_KINDS:
            cached = self._encode(row)
            self.rows.append(cached)
            self._orders[row.id] = cached.order

    CachedAgent._place = place  # type: ignore[method-assign]


@mutant("a changed row keeps its old place")
def _() -> None:
    real = CachedAgent._encode

    def encode(self: CachedAgent, row: Any) -> Any:
        known = self.__dict__.setdefault("_first", {})
        return replace(real(self, row), order=known.setdefault(row.id, (row.position, row.id.hex)))

    CachedAgent._encode = encode  # type: ignore[method-assign]


@mutant("a row that leaves the model's sight stays")
def _() -> None:
    def place(real: Any) -> Any:
        def wrapped(self: CachedAgent, row: Any) -> None:
            if row.state == "active" or row.id not in self._orders:
                real(self, row)

        return wrapped

    patch(CachedAgent, "_place", place)


@mutant("request without the block's limit")
def _() -> None:
    patch(CachedAgent, "request", lambda real: lambda self, block: real(self, None))


@mutant("request up to the block's begin")
def _() -> None:
    patch(CachedAgent, "request", lambda real: lambda self, block: real(self, block and block - 1))


@mutant("request keeps parted tool calls")
def _() -> None:
    cached_agent.without_orphans = lambda rows: list(rows)


@mutant("request leaves out what cannot be read")
def _() -> None:
    def request(self: CachedAgent, block: int | None) -> tuple[str, ...]:
        order = (((block or 10**6) + 1) * BLOCK, "")
        rows = self.rows[: bisect_left(self.rows, order, key=lambda row: row.order)]
        whole = cached_agent.without_orphans(rows)
        return tuple(row.piece for row in whole if row.piece is not None)

    CachedAgent.request = request  # type: ignore[method-assign]


@mutant("no incarnation")
def _() -> None:
    """Revisions are compared, incarnations are not."""

    def synchronise(real: Any) -> Any:
        def wrapped(self: AgentCache, agent: CachedAgent, profile: Any) -> Any:
            clock = selectors.read_clock(agent.session_id)
            if clock is not None and agent.baseline[1]:
                agent.baseline = (agent.baseline[0], clock.incarnation)
            return real(self, agent, profile)

        return wrapped

    patch(AgentCache, "_synchronise", synchronise)


@mutant("a new life remembers the old one's requests")
def _() -> None:
    CachedAgent.forget_sent = lambda self, incarnation: None  # type: ignore[method-assign]


@mutant("ended and deleted sessions are answered")
def _() -> None:
    def checked(real: Any) -> Any:
        def wrapped(self: AgentCache, clock: Any, profile: Any) -> Any:
            living = clock and replace(clock, ended=False, deleted=False)
            return real(self, living, profile)

        return wrapped

    patch(AgentCache, "_checked", checked)


@mutant("a change of agent or model goes unnoticed")
def _() -> None:
    def checked(self: AgentCache, clock: Any, profile: Any) -> Any:
        if clock is None or clock.deleted:
            raise GuardRefused(Reason.DELETED, say("gone"))
        if clock.ended:
            raise GuardRefused(Reason.ENDED, say("over"))
        return clock

    AgentCache._checked = checked  # type: ignore[method-assign]


@mutant(
    "a running turn's agent can be evicted",
    proof="tests/gateway_app/test_agent_cache.py::test_it_never_drops_what_runs",
)
def _() -> None:
    AgentCache.pin = lambda self, session_id: None  # type: ignore[method-assign]
    AgentCache.unpin = lambda self, session_id: None  # type: ignore[method-assign]


@mutant("another wire format keeps the encoded rows")
def _() -> None:
    def guard(real: Any) -> Any:
        def wrapped(self: AgentCache, session_id: UUID, profile: Any, **rest: Any) -> Any:
            agent = self.get(session_id)
            if agent is not None:
                agent.wire = profile.wire
            return real(self, session_id, profile, **rest)

        return wrapped

    patch(AgentCache, "guard", guard)
