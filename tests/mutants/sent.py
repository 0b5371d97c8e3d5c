"""Faults of the memory of what was sent, and of the verdicts drawn from it."""

from dataclasses import replace
from typing import Any

from gateway_app import agent_cache
from gateway_app.agent_cache import AgentCache
from gateway_app.cached_agent import CachedAgent, Reason, Verdict
from gateway_app.services.runs import TurnRecord
from tests.mutants.catalogue import mutant, patch


def _record(change: Any) -> None:
    def mark(real: Any) -> Any:
        return lambda self, pieces, revision, generation: change(
            self, pieces, real(self, pieces, revision, generation)
        )

    patch(CachedAgent, "mark_sent", mark)


@mutant("`sent` off by one: memory")
def _() -> None:
    def change(agent: CachedAgent, pieces: Any, record: Any) -> Any:
        agent.sent = pieces[:-1]
        return record

    _record(change)


@mutant("`sent` off by one: record's rows")
def _() -> None:
    _record(lambda agent, pieces, record: replace(record, rows=record.rows - 1))


@mutant("`sent` off by one: record's digest")
def _() -> None:
    def mark(real: Any) -> Any:
        def wrapped(self: CachedAgent, pieces: Any, revision: int, generation: int) -> Any:
            record = real(self, pieces[:-1], revision, generation)
            self.sent = pieces
            return replace(record, rows=len(pieces))

        return wrapped

    patch(CachedAgent, "mark_sent", mark)


@mutant("the digest goes on from a request that was rewritten")
def _() -> None:
    def mark(real: Any) -> Any:
        def wrapped(self: CachedAgent, pieces: Any, revision: int, generation: int) -> Any:
            if self.sent is not None:
                self.sent = pieces[: len(self.sent)]
            return real(self, pieces, revision, generation)

        return wrapped

    patch(CachedAgent, "mark_sent", mark)


@mutant("the record is not stored")
def _() -> None:
    patch(
        TurnRecord,
        "columns",
        lambda real: (
            lambda self: {
                name: value for name, value in real(self).items() if not name.startswith("sent_")
            }
        ),
    )


@mutant("requests of other processes are forgotten")
def _() -> None:
    AgentCache._record_of_others = (  # type: ignore[method-assign]
        lambda self, agent, generation, last_sent: None
    )


@mutant("own memory counts whoever sent meanwhile")
def _() -> None:
    AgentCache._record_of_others = (  # type: ignore[method-assign]
        lambda self, agent, generation, last_sent: (
            None if agent.sent is not None else last_sent(agent.session_id)
        )
    )


@mutant("every grown request is a rebuild")
def _() -> None:
    agent_cache._starts_with = lambda pieces, record, sent: bool(sent) and pieces == sent


@mutant("a rewrite goes unnoticed")
def _() -> None:
    agent_cache._starts_with = lambda pieces, record, sent: True


@mutant("a rewrite of the last row goes unnoticed")
def _() -> None:
    real = agent_cache._starts_with

    def starts_with(pieces: Any, record: Any, sent: Any) -> bool:
        if record is None and sent:
            return bool(pieces[: len(sent) - 1] == sent[:-1])
        return real(pieces, record, sent)

    agent_cache._starts_with = starts_with


@mutant("any change is a rebuild")
def _() -> None:
    def judge(real: Any) -> Any:
        def wrapped(self: AgentCache, *args: Any, **named: Any) -> Any:
            verdict, reason = real(self, *args, **named)
            if verdict is Verdict.CATCH_UP:
                return Verdict.REBUILD, Reason.REWRITTEN
            return verdict, reason

        return wrapped

    patch(AgentCache, "_judge", judge)


@mutant("another signature goes unnoticed")
def _() -> None:
    def judge(real: Any) -> Any:
        def wrapped(self: AgentCache, agent: Any, *args: Any, **named: Any) -> Any:
            agent.sent_signature = agent.signature
            record = named.get("record")
            named["record"] = record and replace(record, signature=agent.signature)
            return real(self, agent, *args, **named)

        return wrapped

    patch(AgentCache, "_judge", judge)
