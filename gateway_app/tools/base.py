"""What the agent's turn needs of a tool, and what a tool learns of who asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from django.contrib.auth.models import User


class ToolError(Exception):
    """A call that did not succeed; the text is told to the model, and shown to the person."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """On whose behalf a tool runs: it may do what `user` may do, and no more."""

    user: User
    session_id: UUID
    turn_id: UUID
    call_id: str
    """The call's id in the transcript, where models make it: several use one again later."""


class Tool(Protocol):
    """One tool in the registry."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def origin(self) -> str:
        """Where it comes from, for whoever looks for it."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON schema of its arguments, an object."""
        ...

    @property
    def timeout_s(self) -> float | None:
        """How long a call may take; None: as long as any."""
        ...

    @property
    def blocking(self) -> bool:
        """Its call is a plain function, run in a thread; otherwise it is a coroutine function."""
        ...

    def prepare(self, arguments: str, context: ToolContext) -> Callable[[], Any]:
        """The call with these arguments, which gives the result as text; nothing has run yet.

        Raises ToolError where the JSON text is not what the schema wants.
        """
        ...
