"""What a test tells the fake model server to answer, and what it learns of each request."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.gate import Gate

Json = dict[str, Any]


@dataclass
class ToolCall:
    """A call the model makes; its argument text is streamed in the given pieces."""

    id: str
    name: str
    arguments: Sequence[str] = ("{}",)
    extra: Json | None = None
    """What Chat Completions carries beside the call, as `extra_content`."""


@dataclass
class Script:
    """One answer. Delays are for benchmarks; tests hold answers back with gates."""

    tokens: Sequence[str] = ("Hello", ", ", "world", "!")
    reasoning: Sequence[str] = ()
    reasoning_field: str = "reasoning_content"
    reasoning_details: Sequence[Json] = ()
    """Pieces of details, as OpenRouter sends them beside the reasoning."""
    text_field: str = "content"
    """What Chat Completions calls the text: `content`, or `refusal`."""
    signature: Sequence[str] = ("c2lnbmVk", "+/==")
    """Of the reasoning in Messages: the pieces of its signature."""
    redacted: Sequence[str] = ()
    """Blocks of redacted reasoning in Messages."""
    tool_calls: Sequence[ToolCall] = ()
    first_token_delay_s: float = 0
    token_delay_s: float = 0
    headers_gate: Gate | None = None
    gates: Mapping[int, Gate] = field(default_factory=dict)
    """Waited for before piece i of the answer goes out (reasoning, text, then tool calls)."""
    end_gate: Gate | None = None
    """Waited for before the finish reason goes out."""
    finish_reason: str | None = "stop"
    usage: Json | None = None
    """None: computed honestly from the request and the earlier ones."""
    send_usage: bool = True
    usage_null: bool = False
    """`"usage": null` in every chunk but the last, as several servers do."""
    done: bool = True
    status: int = 200
    error: Json | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_at_byte: int | None = None
    """The connection is cut after this many bytes of the body."""
    raw: Sequence[bytes] | None = None
    """The body, verbatim, one write each: garbled chunks, HTML, keep-alives."""
    content_type: str = "text/event-stream"


Answer = Script | Callable[[Json], Script]


@dataclass
class RecordedRequest:
    """What arrived, and how it ended. Times are `time.monotonic()`."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    at: float
    peer: object = None
    """The client's side of the connection: equal for requests over the same one."""
    started: Gate = field(default_factory=Gate)
    """Released when the first byte of the answer's body went out."""
    ended: Gate = field(default_factory=Gate)
    """Released when the answer is over, for whatever reason."""
    closed_by_client: bool = False
    ended_at: float | None = None
    pieces_sent: int = 0

    @cached_property
    def json(self) -> Json:
        value: Json = json.loads(self.body)
        return value

    @property
    def messages(self) -> list[Json]:
        messages: list[Json] = self.json["messages"]
        return messages
