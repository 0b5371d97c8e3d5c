"""What the agent loop needs of a model provider, and what it gets back.

ProviderError
├── ModelUnavailable   model_unavailable   not reachable, 5xx, cut stream
├── ModelAuth          model_auth          401, 403
├── ModelRateLimited   model_rate_limited  429
├── ModelTimeout       model_timeout       no first token, or silence in the stream
├── ModelRefused       model_refused       the provider's content filter
├── ModelInvalid       model_invalid       400, unknown model, an answer that cannot be read
└── ContextFull        context_full        the request does not fit the model's window
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import msgspec

from sessions_app.errors import Refusal
from sessions_app.sentences import Sentence
from sessions_app.signals import TranscriptRow


class ProviderError(Refusal):
    """A failed model call. What it says never holds a key."""

    code = "model_unavailable"

    def __init__(self, sentence: Sentence, *, retry_after_ms: int | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_ms = retry_after_ms


class ModelUnavailable(ProviderError):
    code = "model_unavailable"


class ModelAuth(ProviderError):
    code = "model_auth"


class ModelRateLimited(ProviderError):
    code = "model_rate_limited"


class ModelTimeout(ProviderError):
    code = "model_timeout"


class ModelRefused(ProviderError):
    code = "model_refused"


class ModelInvalid(ProviderError):
    code = "model_invalid"


class ContextFull(ProviderError):
    code = "context_full"


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """A token's worth of text; a struct, for a frozen dataclass takes eight times as long."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call; `id` and `name` come with its first piece."""

    index: int
    id: str | None
    name: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. None: not told.

    `input_tokens` includes `cached_tokens` (read from the provider's cache) and
    `cache_write_tokens` (written to it, where that has a price of its own).
    """

    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Why the model stopped.

    `stop`, `length`, `tool_calls`, `content_filter` (the provider cut or withheld it), `refused`
    (the model declined, in words of its own), `pause` (it wants to go on in a next request).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Replay:
    """How the provider wants the whole answer back, where its plain parts do not say enough.

    Parts in the model's order: `reasoning` with its `signature`, `redacted_reasoning` with its
    `data`, `text`, and `tool_call` with the `index` of the call's deltas. `server_fields`, and a
    call, may hold `fields` that go back to one `server` only.
    """

    parts: tuple[Mapping[str, object], ...]
    within_calls: bool = False
    """Wanted only of a turn that has called tools."""


Delta = TextDelta | ReasoningDelta | ToolCallDelta | Usage | Finish | Replay


@dataclass(frozen=True, slots=True)
class Prompt:
    """The frozen part of every request: the system prompt and the tool schemas (JSON array)."""

    hash: str
    system: str
    tools: str = "[]"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, ready to send: the body is joined from pieces that were encoded once."""

    session_id: UUID
    model: str
    body: bytes
    call_ids: frozenset[str] = frozenset()
    """Of the calls that the conversation holds: no new one may be called the same."""


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """What the agent's version says beside the prompt; None leaves it to the provider."""

    temperature: float | None = None
    max_output_tokens: int | None = None


class Wire(Protocol):
    """One wire format: how a row and a request look on it. Pure, deterministic."""

    name: str
    """Format and encoder version, such as `openai-chat/3`; part of the cache's signature."""

    def encode(self, row: TranscriptRow) -> str:
        """The row's message as JSON text. Raises ValueError for parts that cannot be read."""
        ...

    def body(
        self,
        *,
        model: str,
        prompt: Prompt,
        pieces: Sequence[str],
        settings: RequestSettings,
        session_id: UUID,
    ) -> bytes:
        """The request body. (system, tools, messages) of a grown request starts with the old's."""
        ...


class Provider(Protocol):
    """One provider in one process: it owns its HTTP client, made once."""

    name: str
    wire: Wire

    @property
    def fingerprint(self) -> str:
        """Changes when the credential or the address does; tells nothing about them."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Delta]]:
        """The answer as batches of deltas, each batch what one read of the network brought.

        The first delta is yielded alone and at once; the iterator gives the event loop a turn at
        least every millisecond. Ends after the provider's own end of stream. Raises a
        ProviderError for everything that goes wrong, a cut stream included. Closing the iterator
        (or cancelling the task) closes the connection.
        """
        ...

    def start(self) -> None:
        """Begins what the first request would wait for. Raises a ProviderError."""
        ...

    async def default_model(self) -> str:
        """The model to use when nobody named one. Raises a ProviderError."""
        ...

    async def models(self) -> list[str]:
        """The models that it lists now, as it calls them. Raises a ProviderError."""
        ...

    def window_tokens(self, model: str) -> int | None:
        """What the model holds, as far as it was listed; None: not told."""
        ...

    async def aclose(self) -> None: ...
