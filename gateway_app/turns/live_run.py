"""One run in flight: the agent's port to the guard, the log and the transcript."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from decimal import Decimal
from time import monotonic
from typing import Final
from uuid import UUID

from django.db import DatabaseError

from gateway_app import events
from gateway_app.agent import Draft
from gateway_app.agent_cache import AgentCache, ConfigChanged, GuardedRequest
from gateway_app.cached_agent import Profile, Verdict
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_log import EventLog, reasoning_content, text_content
from gateway_app.profiles import Profiles
from gateway_app.providers.base import Delta, ModelRequest, Provider, ProviderError, Usage
from gateway_app.selectors.sessions import read_unannounced
from gateway_app.services.runs import RunWrite, RunWritten, TurnRecord, read_sent, write_run
from gateway_app.services.starting import RunLease
from gateway_app.subscriptions import Hub
from gateway_app.tools.calls import ToolCalls
from gateway_app.turns.fallback import ModelChoice
from gateway_app.turns.tool_step import ToolStep, step_rows
from sessions_app import database as db
from sessions_app.models import new_id
from sessions_app.selectors import read_clock

logger: Final = logging.getLogger(__name__)

_WORSE = list(Verdict)


class LiveRun:
    """The port of one run. Its agent task is `task`; whoever stops it sets `stopping` first."""

    def __init__(
        self,
        run: RunLease,
        *,
        lanes: DatabaseLanes,
        cache: AgentCache,
        fallback_cache: AgentCache,
        log: EventLog,
        hub: Hub,
        profiles: Profiles,
        tools: ToolCalls,
    ) -> None:
        self.run = run
        self.task: asyncio.Task[Draft] | None = None
        self.stopping: str | None = None
        self.record = TurnRecord()
        self.started = monotonic()
        self.draft: Draft | None = None
        self.in_doubt = False
        """A step broke off with the database, and may have been committed all the same. The run
        ends nothing then: whoever recovers the turn reads what became of the step."""
        self.profile: Profile | None = None
        self.log = log.open(run, self.stop)
        self._config = run.config
        self._provider: Provider | None = None
        self._writing: asyncio.Future[RunWritten] | None = None
        self._lanes, self._cache, self._hub, self._profiles = lanes, cache, hub, profiles
        self._fallback_cache, self._tools = fallback_cache, tools
        self._choice = ModelChoice()
        self._costs: list[Decimal | None] = []

    def stop(self, why: str) -> None:
        """Ends the model request. `why` is stopped, fenced, storage or draining; the first wins."""
        if self.stopping is None:
            self.stopping = why
        if self.task is not None:
            self.task.cancel()

    # --- the agent's port ---

    def new_draft(self) -> Draft:
        if closing := self.close_items():  # a blank answer, which is asked for again
            self.log.add(*closing)
        self.draft = Draft(new_id())
        self._text_name = str(self.draft.message_id)
        self._reasoning = events.reasoning_id(self.draft.message_id)
        self._reasoning_name = str(self._reasoning)
        return self.draft

    async def next_request(self) -> ModelRequest:
        while True:
            choice = self._choice.index
            profile, provider = await self._profiles.get(self._config, self.run.frozen, choice)
            self.profile, self._provider = profile, provider
            try:
                guarded = await self._lanes.read(
                    (self._fallback_cache if choice else self._cache).guard,
                    self.run.session_id,
                    profile,
                    block=self.run.block,
                    generation=self.run.generation,
                    last_sent=_no_record if self.run.first_turn or choice else read_sent,
                    window_tokens=provider.window_tokens(profile.model),
                )
            except ConfigChanged:
                clock = await self._lanes.read(read_clock, self.run.session_id)
                if clock is not None:
                    self._config = clock.config
                continue
            self._remember(guarded, profile)
            await self._announce(guarded)
            if guarded.overfull is not None:
                raise guarded.overfull
            body = profile.wire.body(
                model=profile.model,
                prompt=profile.prompt,
                pieces=guarded.pieces,
                settings=profile.settings,
                session_id=self.run.session_id,
            )
            return ModelRequest(self.run.session_id, profile.model, body, guarded.call_ids)

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Delta]]:
        assert self._provider is not None
        return self._provider.stream(request)

    def show_text(self, draft: Draft, text: str) -> None:
        first = self._first_delta()
        if draft.reasoning_open:
            self.log.add(*events.reasoning_end(self._reasoning))
            draft.close_reasoning()
        if not draft.text_open:
            draft.text_open = True
            self.log.add(events.text_start(draft.message_id))
        self.log.add_content(text_content, self._text_name, text, urgent=first)

    def show_reasoning(self, draft: Draft, text: str) -> None:
        first = self._first_delta()
        if not draft.reasoning_open:
            draft.open_reasoning()
            self.log.add(*events.reasoning_start(self._reasoning))
        self.log.add_content(reasoning_content, self._reasoning_name, text, urgent=first)

    def count_usage(self, usage: Usage) -> None:
        record = self.record
        record.input_tokens = _plus(record.input_tokens, usage.input_tokens)
        if usage.input_tokens is not None:
            record.context_tokens = usage.input_tokens
        record.cached_tokens = _plus(record.cached_tokens, usage.cached_tokens)
        record.output_tokens = _plus(record.output_tokens, usage.output_tokens)
        record.cache_write_tokens = _plus(record.cache_write_tokens, usage.cache_write_tokens)
        assert self.profile is not None
        self._costs.append(self._profiles.cost_usd(self.profile, usage))

    async def fall_back(self, error: ProviderError) -> ProviderError | None:
        frozen = await self._profiles.frozen(self._config, self.run.frozen)
        failed = self.record.model or frozen.model
        final = self._choice.next(error, len(frozen.fallbacks))
        if final is None:
            self.record.fallback_from = self.record.fallback_from or failed or "default"
            logger.info("A fallback model is asked", extra={"turn": self.run.turn_id,
                        "session": self.run.session_id, "code": error.code})  # fmt: skip
        return final

    async def call_tools(self, draft: Draft) -> None:
        assert self.profile is not None
        self.log.add(*self.close_items())
        if draft.sent is not None:
            self.record.step_sent = ""  # once the step's rows are written
        step = ToolStep(self.run, draft, self.log, self._lanes, self._tools)
        await step.call(self.profile.prompt.tools)

    async def commit_step(self, draft: Draft) -> None:
        """The calls and their results are rows before the next model call."""
        self.log.add(*self.close_items())
        finish = "tool_calls" if draft.calls else draft.finish
        self.draft = None  # its rows are written now, whatever stops the agent meanwhile
        step = RunWrite(
            run=self.run, messages=step_rows(draft, finish), record=self.record, absorb=True
        )
        await self.write(step, draft)

    # --- what the runner needs ---

    def close_items(self) -> list[bytes]:
        """Events that close what the draft has open."""
        draft, closing = self.draft, []
        if draft is not None and draft.reasoning_open:
            closing += events.reasoning_end(events.reasoning_id(draft.message_id))
            draft.close_reasoning()
        if draft is not None and draft.text_open:
            closing.append(events.text_end(draft.message_id))
            draft.text_open = False
        return closing

    async def write(self, write: RunWrite, draft: Draft | None = None) -> RunWritten:
        """One transaction of this run, with what its log still has; published after the commit.

        It is not torn by a stop: once it began, it ends, and is published. When it fails, `draft`
        is the run's again, whoever still waits: a person saw it.
        """
        await self.settle()
        self._writing = asyncio.ensure_future(self._write(write, draft))
        return await asyncio.shield(self._writing)

    async def settle(self) -> None:
        """No transaction of this run is in flight; whoever began one was told how it ended."""
        if self._writing is not None:
            await asyncio.wait([self._writing])  # which a cancelled caller does not cancel
            self._writing.exception()

    async def _write(self, write: RunWrite, draft: Draft | None) -> RunWritten:
        try:
            return await self._commit(write)
        except DatabaseError as exc:
            if draft is not None:
                self.in_doubt = isinstance(exc, db.AWAY)
                self.draft = draft
            raise

    async def _commit(self, write: RunWrite) -> RunWritten:
        await self.log.settle()
        before = self.log.take()
        whole = replace(write, before=[*before, *write.before])
        try:
            written = await self._lanes.write(write_run, write=whole)
        except DatabaseError:
            self.log.put_back(before)
            self.log.in_doubt = True
            raise
        self.log.last_seq = written.logged[0].last_seq
        self._hub.publish(written.logged)
        return written

    @property
    def cost_usd(self) -> Decimal | None:
        """What the run's requests cost together; None: one's price is not known."""
        known = [cost for cost in self._costs if cost is not None]
        return sum(known, Decimal()) if known and len(known) == len(self._costs) else None

    def _remember(self, guarded: GuardedRequest, profile: Profile) -> None:
        """The first request's verdict and the worst later one, and the last request's record.

        Those of a fallback are its own, and what is not sent is no request: what the agent's model
        was sent stays what it was.
        """
        record = self.record
        record.model = f"{profile.provider}:{profile.model}"
        if self._choice.index or guarded.overfull is not None:
            return
        record.fallback_from = ""  # an earlier run of the turn may have had to fall back
        record.sent = guarded.record
        if record.verdict is None:
            record.verdict, record.reason = guarded.verdict.value, guarded.reason.value
            record.baseline, record.revision = guarded.baseline, guarded.revision
        worst = Verdict(record.worst_verdict or record.verdict)
        if record.worst_verdict is None or _WORSE.index(guarded.verdict) > _WORSE.index(worst):
            record.worst_verdict, record.worst_reason = guarded.verdict.value, guarded.reason.value

    async def _announce(self, guarded: GuardedRequest) -> None:
        """Tells clients of rows that nobody announced: raw writers cannot."""
        if self._choice.index:
            return  # its cache is nobody's receiver: what is news to it is none to clients
        if guarded.news:
            shapes = await self._lanes.read(
                read_unannounced, session_id=self.run.session_id, message_ids=guarded.news
            )
            self.log.add(*(events.custom("message", shape) for shape in shapes))
        if guarded.rewritten_from is not None:
            self.log.add(events.rewritten(guarded.rewritten_from, guarded.revision))

    def _first_delta(self) -> bool:
        if self.record.ttft_ms is not None:
            return False
        self.record.ttft_ms = round((monotonic() - self.started) * 1000)
        return True


def _no_record(_: UUID) -> None:
    """A session's first turn has no earlier request."""


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more
