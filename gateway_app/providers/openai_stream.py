"""The bytes of a Chat Completions answer to deltas: our own line split, msgspec structs.

The SDK's event objects cost 170 us a token, this 3-5. Servers differ, so: any chunk boundaries,
CRLF, comments, events of several data lines, `usage: null`, unknown and missing fields.
"""

import json
from typing import Final

import msgspec

from gateway_app.providers.base import (
    Delta,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
MAX_TOKENS: Final = 100_000_000
"""Above any request's; the sum over a turn's steps still fits the database's columns."""

_REASONS: Final = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


class UnreadableAnswer(ValueError):
    """The server sent what is no Chat Completions answer."""


class ErrorInAnswer(Exception):
    """The server sent an error object; `error` is it, as decoded JSON."""

    def __init__(self, error: object) -> None:
        super().__init__("The server sent an error instead of an answer.")
        self.error = error


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Content(msgspec.Struct):
    """One part of a content list, as a few servers send it."""

    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Content] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: object = None
    """Read without demands: numbers that make no sense cost nobody a whole answer."""
    error: object = None


_decode: Final = msgspec.json.Decoder(_Chunk).decode


def _decode_leniently(text: bytes) -> _Chunk:
    """For what msgspec refuses: broken UTF-8, and surrogates that stand alone."""
    try:
        value = json.loads(text.decode("utf-8", "replace"))
        return msgspec.convert(value, _Chunk)
    except (ValueError, RecursionError, msgspec.ValidationError) as exc:
        raise UnreadableAnswer("A chunk of the answer cannot be read.") from exc


class AnswerParser:
    """Takes the answer's bytes in any pieces. `feed` returns the deltas that they complete."""

    def __init__(self) -> None:
        self.finished = False
        """A finish reason has been read."""
        self.done = False
        """The server has said [DONE]: nothing more will come."""
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._event: list[bytes] = []
        self._event_bytes = 0
        self._half = ""
        self._calls: dict[str, int] = {}
        self._usage: dict[str, object] | None = None

    def feed(self, piece: bytes) -> list[Delta]:
        """Raises UnreadableAnswer, ErrorInAnswer."""
        if b"\n" not in piece:
            self._pending.append(piece)
            self._pending_bytes += len(piece)
            if self._pending_bytes > MAX_LINE_BYTES:
                raise UnreadableAnswer("A line of the answer is too long.")
            return []
        if self._pending:
            piece = b"".join([*self._pending, piece])
            self._pending.clear()
        lines = piece.split(b"\n")
        rest = lines.pop()
        self._pending_bytes = len(rest)
        if rest:
            self._pending.append(rest)
        deltas: list[Delta] = []
        for line in lines:
            self._line(line, deltas)
        return deltas

    def end(self) -> list[Delta]:
        """The deltas of an event that the stream's end completes."""
        deltas: list[Delta] = []
        line = b"".join(self._pending)
        self._pending.clear()
        for last in (line, b""):
            self._line(last, deltas)
        self._close(deltas)
        return deltas

    def whole(self, body: bytes) -> list[Delta]:
        """The deltas of an answer that was not streamed: one JSON object."""
        deltas: list[Delta] = []
        self._chunk(body, deltas)
        self._close(deltas)
        return deltas

    def _line(self, line: bytes, deltas: list[Delta]) -> None:
        if line.endswith(b"\r"):
            line = line[:-1]
        if line.startswith(b"data:"):
            self._event.append(line[5:])
            self._event_bytes += len(line)
            if self._event_bytes > MAX_LINE_BYTES:
                raise UnreadableAnswer("An event of the answer is too long.")
        elif not line and self._event:
            event = self._event[0] if len(self._event) == 1 else b"\n".join(self._event)
            self._event.clear()
            self._event_bytes = 0
            self._chunk(event, deltas)

    def _chunk(self, text: bytes, deltas: list[Delta]) -> None:
        if self.done or not (text := text.strip()):
            return
        if text == b"[DONE]":
            self.done = True
            self._close(deltas)
            return
        try:
            chunk = _decode(text)
        except (msgspec.DecodeError, RecursionError):
            chunk = _decode_leniently(text)
        if chunk.error is not None:
            raise ErrorInAnswer(chunk.error)
        if chunk.choices:
            self._choice(chunk.choices[0], deltas)
        if isinstance(chunk.usage, dict):
            self._usage = chunk.usage

    def _choice(self, choice: _Choice, deltas: list[Delta]) -> None:
        message = choice.delta or choice.message
        if message is not None:
            if reasoning := message.reasoning_content or message.reasoning:
                deltas.append(ReasoningDelta(_well_formed(reasoning)))
            content = message.content or message.refusal
            if isinstance(content, list):
                content = "".join(part.text for part in content)
            if content and (text := self._text(content)):
                deltas.append(TextDelta(text))
            if message.tool_calls:
                deltas.extend(self._call(call) for call in message.tool_calls)
        reason = choice.finish_reason
        if reason == "error":
            raise ErrorInAnswer(None)
        if reason and not self.finished:
            self.finished = True
            deltas.append(Finish(_REASONS.get(reason, "stop")))

    def _close(self, deltas: list[Delta]) -> None:
        """Adds what had to wait for the end: half a character, and the last usage told."""
        if self._half:
            deltas.append(TextDelta("\ufffd"))
        if self._usage is not None:
            deltas.append(_usage(self._usage))
        self._half, self._usage = "", None

    def _text(self, text: str) -> str:
        """The text without lone surrogates; a first half waits for its second half."""
        if text.isascii() and not self._half:
            return text
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return _well_formed(text)

    def _call(self, call: _ToolCall) -> ToolCallDelta:
        index = call.index
        if index is None:
            # some servers number nothing: a new id is a new call
            latest = max(self._calls.values(), default=-1)
            index = latest if call.id is None else self._calls.get(call.id, latest + 1)
            index = max(index, 0)
        if call.id:
            self._calls.setdefault(call.id, index)
        function = call.function or _Function()
        return ToolCallDelta(
            index=index,
            id=_well_formed(call.id or "") or None,
            name=_well_formed(function.name or "") or None,
            arguments=_well_formed(function.arguments or ""),
        )


def _well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _usage(told: dict[str, object]) -> Usage:
    details = told.get("prompt_tokens_details")
    cached = _tokens(details.get("cached_tokens")) if isinstance(details, dict) else None
    if cached is None:
        cached = _tokens(told.get("prompt_cache_hit_tokens"))
    return Usage(
        input_tokens=_tokens(told.get("prompt_tokens")),
        cached_tokens=cached,
        output_tokens=_tokens(told.get("completion_tokens")),
    )


def _tokens(told: object) -> int | None:
    """A number of tokens; None for what cannot be one."""
    return told if type(told) is int and 0 <= told <= MAX_TOKENS else None
