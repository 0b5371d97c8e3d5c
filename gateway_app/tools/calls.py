"""One call of a tool: with a limit of time and size, and an answer for the model in any case."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from django.core.exceptions import PermissionDenied

from gateway_app.config import GatewayConfig
from gateway_app.providers.rows import clean
from gateway_app.tools.base import Tool, ToolContext, ToolError
from gateway_app.tools.threads import ToolThreads

logger: Final = logging.getLogger(__name__)

BROKE: Final = "The tool failed. What went wrong is in the server's log."
_SENTENCE: Final = 2000
"""Characters of a ToolError: a part of it may be what the model wrote."""
DENIED: Final = "The person you answer may not do this."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model is told of a call."""

    content: str
    error: bool
    duration_ms: int


class ToolCalls:
    """Runs tools for one event loop."""

    def __init__(self, config: GatewayConfig) -> None:
        self._timeout_s = config.tool_timeout_s
        self._characters = config.tool_result_characters
        self._threads = ToolThreads(config.tool_threads)
        self._running: set[asyncio.Task[Any]] = set()

    async def call(self, tool: Tool, arguments: str, context: ToolContext) -> Outcome:
        """The tool's result, or a sentence why there is none. Cancelled, it waits for nothing."""
        began = monotonic()
        error = True
        try:
            content, error = await self._told(tool, arguments, context)
        except PermissionDenied:
            content = DENIED
        except Exception:  # a tool is foreign code: whatever it raises, the turn goes on
            logger.exception("A tool failed", extra=_facts(tool, context))
            content = BROKE
        return Outcome(content, error, round((monotonic() - began) * 1000))

    async def _told(self, tool: Tool, arguments: str, context: ToolContext) -> tuple[str, bool]:
        """The result; or, with True, why there is none."""
        try:
            return await self._result(tool, arguments, context), False
        except ToolError as exc:
            return _cut(clean(str(exc))) or BROKE, True

    async def _result(self, tool: Tool, arguments: str, context: ToolContext) -> str:
        call = tool.prepare(clean(arguments), context)
        run = self._threads.run if tool.blocking else self._threads.run_coroutine
        begun = asyncio.Event()
        work = _contained(run(call, context.session_id, begun.set))
        content = await self._within(work, tool.timeout_s or self._timeout_s, begun)
        if len(content) > self._characters:
            raise ToolError(
                f"It ran, but its result has {len(content):,} characters, and at most"
                f" {self._characters:,} can be taken. Ask for less."
            )
        return content

    async def _within(
        self, work: Coroutine[Any, Any, str], limit_s: float, begun: asyncio.Event
    ) -> str:
        """What the work gives. It is told to end after the limit, and is not waited for."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        try:
            await asyncio.wait([task], timeout=limit_s)
        finally:
            if not task.done():
                task.cancel()
        if not task.done() and not begun.is_set():
            raise ToolError(
                f"It was not run: for {limit_s:g} s other calls took every place. Try again later."
            )
        if not task.done():
            raise ToolError(
                f"It did not answer within {limit_s:g} s, and was given up. It may have run."
            )
        if task.cancelled():
            raise ToolError("It gave up.")
        error = task.exception()
        if error is not None and not isinstance(error, Exception):
            raise RuntimeError(f"The tool raised {type(error).__name__}.") from error
        return task.result()

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # of one that was given up nobody asks


async def _contained(work: Coroutine[Any, Any, str]) -> str:
    """A tool that leaves the process would take the whole server along."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as exc:
        raise RuntimeError(f"The tool raised {type(exc).__name__}.") from exc


def _cut(text: str) -> str:
    return text if len(text) <= _SENTENCE else f"{text[:_SENTENCE]}…"


def _facts(tool: Tool, context: ToolContext) -> dict[str, object]:
    return {"tool": tool.name, "session": context.session_id, "turn": context.turn_id}
