"""The lines of an exported conversation, as an import takes them: each is checked by itself."""

import json
from datetime import datetime
from typing import IO, Annotated, Any, Final, Literal, NoReturn
from uuid import UUID

import msgspec

from gateway_app import misfits
from gateway_app.errors import ImportRefused
from sessions_app.fields import dump_json
from sessions_app.models import BLOCK
from sessions_app.sentences import Sentence, quote, say

_STORABLE: Final = r"^[^\x00\ud800-\udfff]*$"
_LAST_POSITION: Final = 2**53

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Cost = Annotated[float, msgspec.Meta(ge=0, lt=1_000_000)]
Word = Annotated[str, msgspec.Meta(max_length=24, pattern=r"^[a-z_]*$")]
Model = Annotated[str, msgspec.Meta(max_length=128, pattern=_STORABLE)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Line(msgspec.Struct, rename="camel", tag_field="type", kw_only=True):
    created_at: Time


class SessionLine(_Line, tag="session"):
    format: Literal["hermes.session"]
    version: Literal[1]
    title: Annotated[str, msgspec.Meta(max_length=200)] = ""
    agent: Annotated[str, msgspec.Meta(max_length=64, pattern=_STORABLE)] = ""
    model: Model = ""
    pinned: bool = False
    archived: bool = False


class _Usage(msgspec.Struct, rename="camel"):
    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None
    output_tokens: Count | None = None


class _Error(msgspec.Struct):
    code: Annotated[str, msgspec.Meta(max_length=32, pattern=r"^[a-z_]+$")]
    message: Annotated[str, msgspec.Meta(max_length=500, pattern=_STORABLE)] = ""


class TurnLine(_Line, tag="turn"):
    id: UUID
    state: Literal["completed", "failed", "stopped", "interrupted"]
    block: Annotated[int, msgspec.Meta(ge=1, le=_LAST_POSITION // BLOCK)]
    finished_at: Time
    model: Model = ""
    finish: Word = ""
    usage: _Usage = msgspec.field(default_factory=_Usage)
    context_tokens: Count | None = None
    ttft_ms: Count | None = None
    duration_ms: Count | None = None
    cost_usd: Cost | None = None
    retry_of: UUID | None = None
    error: _Error | None = None


class MessageLine(_Line, tag="message"):
    id: UUID
    position: Annotated[int, msgspec.Meta(ge=1, le=_LAST_POSITION)]
    kind: Literal["user", "assistant", "tool", "operator", "notice", "summary"]
    state: Literal["active", "compacted", "superseded", "branched"]
    parts: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=10_000)]
    parent_id: UUID | None = None
    turn_id: UUID | None = None
    author: str | None = None
    finish: Word | None = None
    feedback: Literal[-1, 0, 1] | None = None


class _Part(msgspec.Struct, tag_field="type", omit_defaults=True):
    """Of a part nothing else is kept: no field that nobody checks gets into a transcript."""


class _Text(_Part, tag="text"):
    text: str


class _Reasoning(_Part, tag="reasoning"):
    text: str
    duration_ms: Count | None = msgspec.field(default=None, name="durationMs")


class _ToolCall(_Part, tag="tool_call"):
    id: str
    name: str
    arguments: str


class _ToolResult(_Part, tag="tool_result"):
    call_id: str = msgspec.field(name="callId")
    content: str
    error: bool | Literal["unknown"] = False
    duration_ms: Count | None = msgspec.field(default=None, name="durationMs")


class _Attachment(_Part, tag="attachment"):
    name: str


_PARTS: Final[dict[str, Any]] = {
    "user": list[_Text | _Attachment],
    "assistant": list[_Text | _Reasoning | _ToolCall],
    "tool": Annotated[list[_ToolResult], msgspec.Meta(min_length=1, max_length=1)],
}
AnyLine = SessionLine | TurnLine | MessageLine


def read_line(file: IO[bytes], number: int, limit_bytes: int) -> AnyLine | None:
    """The next line of the file, checked; None at its end. Raises ImportRefused."""
    raw = file.readline(limit_bytes + 1)
    if not raw:
        return None
    if len(raw) > limit_bytes:
        raise ImportRefused(number, say("it is longer than %(limit)s bytes.", limit=limit_bytes))
    try:
        # not msgspec's own decoder: it refuses the surrogates that JSON text may hold
        found = json.loads(raw, parse_constant=_no_number)
        line: AnyLine = msgspec.convert(found, AnyLine)
        _check_times(line)
        if isinstance(line, MessageLine):
            line.parts = _checked_parts(line)
    except (ValueError, RecursionError, msgspec.ValidationError) as exc:
        raise ImportRefused(number, _reason(exc)) from exc
    return line


def _reason(exc: Exception) -> Sentence:
    match exc:
        case RecursionError():
            return say("it nests too deep.")
        case json.JSONDecodeError() | UnicodeDecodeError():
            return say("it is not JSON.")
        case msgspec.ValidationError():
            return misfits.of_body(exc)
    return quote(str(exc))


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON.")


def _check_times(line: AnyLine) -> None:
    """Every time has a year that each time zone has."""
    for time in (line.created_at, getattr(line, "finished_at", line.created_at)):
        if not 1970 <= time.year < 9999:
            raise ValueError("A time is out of range.")


def _checked_parts(line: MessageLine) -> list[dict[str, Any]]:
    """The parts, which a model can be sent. Files are no part of an export: their names stay."""
    found: list[_Part] = msgspec.convert(line.parts, _PARTS.get(line.kind, list[_Text]))
    parts: list[dict[str, Any]] = msgspec.to_builtins(
        [_Text(f"[{one.name}]") if isinstance(one, _Attachment) else one for one in found]
    )
    dump_json(parts)
    return parts
