"""Tools that tell what was done: in `calls` within a process, in a file's lines between them."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from gateway_app.event_store import read_events
from gateway_app.tools import ToolContext, ToolError, tool
from tests.gate import Gate
from tests.toolbox.diary import HOLD, note

ENDLESS_S: Final = 3600.0

calls: Final[list[ToolContext]] = []
begun: Final[dict[str, Gate]] = {}
"""By a call's id: released when it begins."""
gates: Final[dict[str, Gate]] = {}
"""By the argument `where`: a call waits there."""


def forget() -> None:
    """What is held goes on, and nothing has been called."""
    for gate in gates.values():
        gate.release()
    for kept in (calls, begun, gates):
        kept.clear()


async def called(call_id: str) -> None:
    """Returns once the call has begun."""
    await begun.setdefault(call_id, Gate()).wait(60)


def _note(name: str, context: ToolContext) -> None:
    calls.append(context)
    begun.setdefault(context.call_id, Gate()).release()
    note(str(context.turn_id), context.call_id, name)


@tool(timeout_s=ENDLESS_S)
def look(
    context: ToolContext,
    where: Annotated[str, Field(description="A direction.")] = "around",
    for_s: float = 0,
) -> str:
    """Look in a direction."""
    _note("look", context)
    time.sleep(for_s)
    if gate := gates.get(where):
        gate.wait_sync(ENDLESS_S)
    if (folder := os.environ.get(HOLD)) and (fifo := Path(folder) / where).is_fifo():
        fifo.read_bytes()
    return f"Nothing is {where}."


@tool(timeout_s=ENDLESS_S)
async def listen(context: ToolContext, where: str = "around") -> dict[str, Any]:
    """Listen in a direction."""
    _note("listen", context)
    await gates[where].passed()
    return {"heard": where}


@tool
def remember(context: ToolContext) -> list[str]:
    """Tell what happened so far."""
    logged = read_events(context.session_id, from_seq=1, limit_rows=1000)
    return [json.loads(one.event)["type"] for one in logged]


@tool
def stumble(how: Literal["raise", "refuse", "exit", "shout"]) -> str:
    """Do what goes wrong."""
    if how == "raise":
        raise RuntimeError("the secret of the stumble")
    if how == "refuse":
        raise ToolError("The ground is too wet.")
    if how == "exit":
        raise SystemExit(3)
    return "x" * 200_000


@tool(timeout_s=0.05)
async def dawdle() -> str:
    """Take longer than is allowed."""
    await Gate().passed()
    return "never"


@tool
async def sink(context: ToolContext) -> str:
    """Sink into a thread that nobody can end."""
    await asyncio.to_thread(_sink, context)
    return "never"


def _sink(context: ToolContext) -> None:
    _note("sink", context)
    Gate().wait_sync(ENDLESS_S)
