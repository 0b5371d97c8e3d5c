"""Tools that tell what was done: in `calls` within a process, in a file's lines between them."""

import os
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from gateway_app.tools import ToolContext, ToolError, tool
from tests.gate import Gate

DIARY: Final = "TOOLBOX_DIARY"
"""The variable that names a file: every call is a line of it, before it does anything else."""
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
    if path := os.environ.get(DIARY):
        line = f"{context.turn_id} {context.call_id} {name}\n".encode()
        diary = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(diary, line)
        os.close(diary)


def read_diary(path: Path) -> list[list[str]]:
    """[turn, call, tool] of every call so far."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [line.split() for line in text.splitlines()]


@tool(timeout_s=ENDLESS_S)
def look(
    context: ToolContext, where: Annotated[str, Field(description="A direction.")] = "around"
) -> str:
    """Look in a direction."""
    _note("look", context)
    if gate := gates.get(where):
        gate.wait_sync(ENDLESS_S)
    return f"Nothing is {where}."


@tool(timeout_s=ENDLESS_S)
async def listen(context: ToolContext, where: str = "around") -> dict[str, Any]:
    """Listen in a direction."""
    _note("listen", context)
    await gates[where].passed()
    return {"heard": where}


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
