"""A small world: three sessions, three processes, a bare SQL client, and what is true of them."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import IntegrityError

from gateway_app.models import Agent, Event, Turn
from gateway_app.services.agents import create_agent, save_agent_version
from gateway_app.services.runs import TurnRecord
from gateway_app.services.starting import RunLease
from sessions_app.errors import SessionError
from sessions_app.fields import dump_json
from sessions_app.keys import web_key
from sessions_app.services import create_session, end_session
from sessions_app.signals import TranscriptRow
from tests.coherence.oracle import RequestOracle, SentRequest, encoded
from tests.coherence.processes import GuardSeam, Process, Signals
from tests.coherence.raw import MESSAGE, SESSION, RawClient
from tests.coherence.truth import Baseline, StoredSession, Truth, require

REFUSALS: tuple[type[Exception], ...] = (SessionError,)
"""What a service may answer; then nothing has changed."""
CONFLICTS = (*REFUSALS, IntegrityError)
"""Where rows return to places that others may have taken, the constraint may answer."""


class Pick:
    """Small choices, all drawn from one number."""

    def __init__(self, number: int) -> None:
        self._left = number

    def below(self, size: int) -> int:
        self._left, choice = divmod(self._left, size)
        return choice

    def often(self) -> bool:
        return self.below(4) > 0

    def rarely(self) -> bool:
        return self.below(8) == 7


@dataclass(slots=True)
class OpenTurn:
    """A turn that runs: who runs it, its last request, and what others wrote beside it."""

    process: Process
    run: RunLease
    record: TurnRecord = field(default_factory=TurnRecord)
    config: tuple[str, int, str, str] | None = None
    """The session's, where the run has learned that it is no longer the lease's."""
    sent: SentRequest | None = None
    unanswered: bool = False
    """A request went out and its answer is not written yet."""
    steps: int = 0
    quiet: bool = True
    """Nobody else wrote to the session since the turn began."""
    meta_written: bool = False
    beside: dict[UUID, int] = field(default_factory=dict)
    """Rows that others appended while the turn ran, with their positions."""
    fenced: bool = False
    """Somebody else holds the session now, or nobody: the run may write no more."""
    orphaned: bool = False
    """Its process is gone."""


class Stage:
    """What every world of one run shares."""

    def __init__(self) -> None:
        self.client = RawClient()
        self.signals = Signals()
        self.seam = GuardSeam()
        self.seam.open()
        self.owner, _ = User.objects.get_or_create(username="coherence")
        if not Agent.objects.filter(slug="second").exists():
            agent = create_agent(
                slug="second", name="Second", model="openai:fake-2", system_prompt="Second.",
                temperature=None, max_output_tokens=None, created_by_id=None,
            )  # fmt: skip
            save_agent_version(
                agent=agent, model="openai:fake-2", system_prompt="Second, newer.",
                temperature=0.5, max_output_tokens=None, created_by_id=None,
            )  # fmt: skip
        self.operations: Counter[str] = Counter()
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.requests = 0
        self.trace: list[str] = []

    def close(self) -> None:
        self.seam.close()
        self.signals.close()
        self.client.close()


class World:
    """Three fresh sessions: two under one key, of which one is current, and one alone."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.client = stage, stage.client
        self.signals, self.seam = stage.signals, stage.seam
        stage.trace = []
        owner = stage.owner.pk
        key = web_key("main", owner, uuid4())
        second = create_session(key=key, owner_id=owner, agent="main").pk
        end_session(session_id=second)
        first = create_session(key=key, owner_id=owner, agent="main").pk
        alone = create_session(key=web_key("main", owner, uuid4()), owner_id=owner, agent="main").pk
        self.sessions = [first, second, alone]
        self.processes = [
            Process("a"), Process("b", entries=1), Process("c", warm=False),
        ]  # fmt: skip
        self.truth = Truth(self.client, self.sessions)
        self.oracle = RequestOracle()
        self.turns: dict[UUID, OpenTurn] = {}
        self.numbers = itertools.count(1)

    def close(self) -> None:
        self.seam.disarm()
        self.stage.requests += self.oracle.count
        for process in self.processes:
            self.stage.verdicts.update(process.verdicts)
        marks = ", ".join(["%s"] * len(self.sessions))
        for table in (Event._meta.db_table, Turn._meta.db_table, MESSAGE):
            self.client.run(f"DELETE FROM {table} WHERE session_id IN ({marks})", self.sessions)
        self.client.run(f"DELETE FROM {SESSION} WHERE id IN ({marks})", self.sessions)

    # --- what is stored ---

    def stored(self, session_id: UUID) -> StoredSession:
        return self.truth.now[session_id]

    def row(self, session_id: UUID, pick: Pick, **wanted: str) -> TranscriptRow | None:
        """One row of the session, with the wanted kind or state."""
        rows = [
            row for row in self.stored(session_id).rows.values()
            if all(getattr(row, name) == value for name, value in wanted.items())
        ]  # fmt: skip
        return rows[pick.below(len(rows))] if rows else None

    def text(self, pick: Pick | None = None) -> str:
        """Parts that no row had before; or, rarely, the same as an earlier row's."""
        number = next(self.numbers)
        if pick is not None and pick.rarely():
            number = 1
        return dump_json([{"type": "text", "text": f"word {number}"}])

    # --- doing and checking ---

    def count(self, name: str) -> None:
        self.stage.operations[name] += 1
        self.stage.trace.append(name)

    def settle(self, *, several: bool = False) -> bool:
        """Reads what is true now and checks every cache of every process against it (I1, I2)."""
        changed = self.truth.look(several=several)
        for process in self.processes:
            for session_id, agent in process.agents.items():
                rows = self.truth.at.get((session_id, agent.baseline))
                if rows is None:
                    continue
                held = [(row.id, row.piece) for row in agent.rows]
                true = [(row.id, encoded(agent.wire, row)) for row in rows]
                live = agent.baseline == self.stored(session_id).baseline
                require(
                    held == true,
                    "I2 safety" if live else "I2 at baseline",
                    f"process {process.name} at {agent.baseline[0]} holds {len(held)} rows,"
                    f" {len(true)} were visible",
                )
        return changed

    @contextmanager
    def own(
        self,
        process: Process,
        session_id: UUID,
        *,
        fits: bool = True,
        idle: bool = False,
        several: bool = False,
        refusals: tuple[type[Exception], ...] = REFUSALS,
    ) -> Iterator[None]:
        """A service writes in this process. A warm agent that was level is level after it.

        `fits`: its commit can be patched. `idle`: it must be refused while a turn runs or waits.
        `several`: its changes may undo each other.
        """
        agent, before = process.agent(session_id), self.stored(session_id).baseline
        level = agent is not None and agent.baseline == before and process.warm
        others = [one for one in self.sessions if one != session_id]
        stood = [self.stored(one) for one in others]
        with self.signals.of(process), suppress_refusals(self, refusals):
            yield
        changed = self.settle(several=several)
        busy = idle and session_id in self.turns
        require(not (busy and changed), "busy", "a service wrote beside a running turn")
        require(
            [self.stored(one) for one in others] == stood, "session", "another session changed too"
        )
        if level and fits and process.agent(session_id) is agent:
            assert agent is not None
            now = self.stored(session_id).baseline
            require(
                agent.baseline == now,
                "I2 liveness",
                f"process {process.name} wrote from {before[0]} to {now[0]} and stayed at"
                f" {agent.baseline[0]}",
            )

    def operate(
        self, name: str, operation: "Operation", session_id: UUID, process: Process, pick: Pick
    ) -> None:
        """One operation of somebody; turns beside which it changed rows are quiet no more."""
        self.count(name)
        stood = dict(self.truth.now)
        operation(self, session_id, process, pick)
        self.settle()
        for one, turn in self.turns.items():
            if self.stored(one) is not stood[one]:
                turn.quiet = False

    def config(self, session_id: UUID) -> tuple[str, int, str, str]:
        """(agent, version, model, prompt hash)"""
        columns = "agent, agent_version, model, prompt_hash"
        found = self.client.rows(f"SELECT {columns} FROM {SESSION} WHERE id = %s", [session_id])
        return found[0]  # type: ignore[return-value]

    def lifecycle(self, session_id: UUID) -> tuple[str, bool]:
        """(state, deleted)"""
        found = self.client.rows(
            f"SELECT state, deleted_at IS NOT NULL FROM {SESSION} WHERE id = %s", [session_id]
        )
        return found[0][0], bool(found[0][1])

    def baseline(self, process: Process, session_id: UUID) -> Baseline | None:
        agent = process.agent(session_id)
        return None if agent is None else agent.baseline


@contextmanager
def suppress_refusals(
    world: World, refusals: tuple[type[Exception], ...] = REFUSALS
) -> Iterator[None]:
    """A refusal is an answer; it leaves everything as it was."""
    try:
        yield
    except refusals as exc:
        changed = world.truth.look()
        require(not changed, "refusal", f"{type(exc).__name__} left something behind")


Operation = Callable[[World, UUID, Process, Pick], None]
