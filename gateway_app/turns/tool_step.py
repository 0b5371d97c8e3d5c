"""The calls of one step: logged and shown before they are made, and rows once they are over."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gateway_app import events
from gateway_app.agent import Draft, ToolCall, ToolResult
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_log import RunLog
from gateway_app.selectors.people import active_user
from gateway_app.services.runs import keep_sent
from gateway_app.services.starting import RunLease
from gateway_app.services.tool_rows import result_event, result_row
from gateway_app.tools.base import Tool, ToolContext
from gateway_app.tools.calls import ToolCalls
from gateway_app.tools.registry import find_tool, read_names
from sessions_app.fields import dump_json
from sessions_app.models import new_id
from sessions_app.transcript import NewMessage

NOT_MADE: Final = "It was not run: the turn ended before."
STOPPED: Final = "The outcome is unknown: the turn was stopped while it ran. It may have run."
NOBODY: Final = "It was not run: nobody is there on whose behalf it could be."


class ToolStep:
    """One step of one run."""

    def __init__(
        self, run: RunLease, draft: Draft, log: RunLog, lanes: DatabaseLanes, calls: ToolCalls
    ) -> None:
        self._run, self._draft, self._log = run, draft, log
        self._lanes, self._calls = lanes, calls

    async def call(self, schemas: str) -> None:
        """Each call of the draft has its result. They run at the same time.

        Only what `schemas`, the session's own, offered to the model is run, and only once the log
        holds that it was called. A call's result is logged when it comes. Cancelled, the draft
        holds what became of the calls so far.
        """
        draft = self._draft
        offered = read_names(schemas)
        wanted: list[tuple[ToolCall, Tool]] = []
        for call in draft.calls:
            draft.results[call.id] = ToolResult(new_id(), call.id, NOT_MADE, error=True)
            draft.open_calls.add(call.id)
            self._log.add(*events.tool_call(draft.message_id, call.id, call.name, call.arguments))
        for call in draft.calls:
            tool = find_tool(call.name) if call.name in offered else None
            if tool is None:
                self._end(call, f"There is no tool {call.name[:64]!r}.", error=True)
            else:
                wanted.append((call, tool))
        if wanted:
            if sent := sent_parts(draft):
                await self._lanes.write(
                    keep_sent, run=self._run, message_id=draft.message_id, sent=sent
                )
            await self._log.landed()
            await self._call_all(wanted)

    async def _call_all(self, wanted: list[tuple[ToolCall, Tool]]) -> None:
        # not a reader: what a tool writes by way of its user goes where the user came from
        user = await self._lanes.write(active_user, self._run.author_id)
        if user is None:
            for call, _ in wanted:
                self._end(call, NOBODY, error=True)
            return
        run = self._run
        await asyncio.gather(
            *(
                self._call(call, tool, ToolContext(user, run.session_id, run.turn_id, call.id))
                for call, tool in wanted
            )
        )

    async def _call(self, call: ToolCall, tool: Tool, context: ToolContext) -> None:
        results = self._draft.results
        results[call.id] = replace(results[call.id], content=STOPPED, error="unknown")
        outcome = await self._calls.call(tool, call.arguments, context)
        self._end(call, outcome.content, error=outcome.error, duration_ms=outcome.duration_ms)

    def _end(
        self, call: ToolCall, content: str, *, error: bool, duration_ms: int | None = None
    ) -> None:
        message_id = self._draft.results[call.id].message_id
        result = ToolResult(message_id, call.id, content, error, duration_ms)
        self._draft.results[call.id] = result
        self._draft.open_calls.discard(call.id)
        self._log.add(result_event(result))


def open_results(draft: Draft | None) -> Iterator[bytes]:
    """What is told of the calls that were shown and have no result yet."""
    if draft is not None:
        yield from (result_event(draft.results[call_id]) for call_id in sorted(draft.open_calls))


def step_rows(draft: Draft, finish: str | None) -> list[NewMessage]:
    """The answer's row, and a row for the result of each call."""
    answer = NewMessage(
        kind="assistant",
        id=draft.message_id,
        parts=dump_json(draft.parts()),
        sent_parts=sent_parts(draft),
        finish=finish,
    )
    return [answer, *(result_row(result) for result in draft.results.values())]


def sent_parts(draft: Draft) -> str | None:
    """What the provider wants back of the answer, where that is more than its parts."""
    return None if draft.sent is None else dump_json(draft.sent)
