"""A message as it came in by any door, before it is a turn."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message as it came in. `content` is a list of parts; None retries the turn `retry_of`."""

    author_id: int
    author_name: str
    client_message_id: str
    body_hash: str
    content: list[dict[str, Any]] | None
    when_busy: str = "queue"
    retry_of: UUID | None = None
    edit_of: UUID | None = None
    """The message whose words `content` replaces: it and what follows become another branch."""
    agent: str | None = None
    model: str | None = None
    """Those of the session that the message opens; a session that is there keeps its own."""

    @property
    def branches(self) -> bool:
        return self.retry_of is not None or self.edit_of is not None
