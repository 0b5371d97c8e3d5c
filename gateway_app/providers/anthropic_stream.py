"""The events of a Messages answer to deltas, by msgspec structs.

Beside what is shown, the answer's blocks are kept in order where some of them are signed reasoning:
the provider wants those back unchanged.
"""

from typing import Any, Final

import msgspec

from gateway_app.providers.base import (
    Delta,
    Finish,
    ReasoningDelta,
    Replay,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from gateway_app.providers.event_stream import (
    EventStreamParser,
    TextHalves,
    decode,
    token_count,
    well_formed,
)
from gateway_app.providers.failures import ErrorInAnswer, UnreadableAnswer

_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "refusal": "content_filter",
}
MAX_BLOCKS: Final = 4096
"""Blocks of one answer; more are a fault of the server."""


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: object = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: object = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: object = None
    error: object = None


class _Whole(_Message):
    error: object = None


_DECODER: Final = msgspec.json.Decoder(_Event)
_WHOLE_DECODER: Final = msgspec.json.Decoder(_Whole)


class _Kept:
    """One block of the answer as it must be sent back."""

    def __init__(self, kind: str, index: int, data: str | None = None) -> None:
        self.kind, self.index, self.data = kind, index, data
        self.texts: list[str] = []
        self.signature: list[str] = []

    def part(self) -> dict[str, object] | None:
        text = "".join(self.texts)
        match self.kind:
            case "thinking":
                signature = "".join(self.signature)
                if not signature:
                    return None
                return {"type": "reasoning", "text": text, "signature": signature}
            case "redacted_thinking":
                return {"type": "redacted_reasoning", "data": self.data} if self.data else None
            case "text":
                return {"type": "text", "text": text} if text else None
            case "tool_use":
                return {"type": "tool_call", "index": self.index}
        return None


class AnthropicAnswerParser(EventStreamParser):
    """Reads the events of a Messages stream; without a stream the one message."""

    def __init__(self) -> None:
        super().__init__()
        self._halves = TextHalves()
        self._kept: dict[int, _Kept] = {}
        self._usage: dict[str, Any] = {}

    def whole(self, body: bytes) -> list[Delta]:
        deltas: list[Delta] = []
        message = decode(_WHOLE_DECODER, body)
        if message.error is not None:
            raise ErrorInAnswer(message.error)
        self._count(message.usage)
        for index, block in enumerate(message.content or ()):
            self._begin(index, block, deltas)
            if block.type == "tool_use" and block.input is not None:
                arguments = msgspec.json.encode(block.input).decode()
                deltas.append(ToolCallDelta(index, None, None, arguments))
        self._stop(message.stop_reason or "end_turn", deltas)
        self._close(deltas)
        return deltas

    def _chunk(self, text: bytes, deltas: list[Delta]) -> None:
        event = decode(_DECODER, text)
        match event.type:
            case "content_block_delta" if event.delta is not None:
                self._go_on(event.index, event.delta, deltas)
            case "content_block_start" if event.content_block is not None:
                self._begin(event.index, event.content_block, deltas)
            case "message_start" if event.message is not None:
                self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._stop(event.delta.stop_reason, deltas)
            case "message_stop":
                self.done = True
                self._close(deltas)
            case "error":
                raise ErrorInAnswer(event.error)
            case "" if event.error is not None:
                raise ErrorInAnswer(event.error)
            case _:
                pass  # pings, the ends of blocks, and what a later version adds

    def _begin(self, index: int, block: _Block, deltas: list[Delta]) -> None:
        if len(self._kept) >= MAX_BLOCKS:
            raise UnreadableAnswer("The answer has too many blocks.")
        self._kept[index] = _Kept(block.type, index, block.data)
        if block.type == "tool_use":
            name = well_formed(block.name or "") or None
            deltas.append(ToolCallDelta(index, well_formed(block.id or "") or None, name, ""))
        elif block.type.endswith("thinking"):
            # a sign of life: the model may think for minutes and show nothing of it
            deltas.append(ReasoningDelta(""))
        self._show(index, block.text, block.thinking, block.signature, deltas)

    def _go_on(self, index: int, delta: _Delta, deltas: list[Delta]) -> None:
        kept = self._kept.get(index)
        if kept is None:
            raise UnreadableAnswer("A part of the answer has no beginning.")
        if delta.partial_json:
            if kept.kind == "tool_use":
                deltas.append(ToolCallDelta(index, None, None, well_formed(delta.partial_json)))
        else:
            self._show(index, delta.text, delta.thinking, delta.signature, deltas)

    def _show(
        self,
        index: int,
        text: str | None,
        thinking: str | None,
        signature: str | None,
        deltas: list[Delta],
    ) -> None:
        kept = self._kept[index]
        if text and (text := self._halves.take(text)):
            kept.texts.append(text)
            deltas.append(TextDelta(text))
        if thinking:
            kept.texts.append(thinking)
            deltas.append(ReasoningDelta(well_formed(thinking)))
        if signature:
            kept.signature.append(signature)

    def _stop(self, reason: str, deltas: list[Delta]) -> None:
        if self.finished:
            return
        self.finished = True
        parts = [part for kept in self._kept.values() if (part := kept.part()) is not None]
        if any(part["type"] in {"reasoning", "redacted_reasoning"} for part in parts):
            deltas.append(Replay(tuple(parts)))
        deltas.append(Finish(_REASONS.get(reason, "stop")))

    def _close(self, deltas: list[Delta]) -> None:
        """Adds half a character that stayed alone, and the last counts told."""
        if rest := self._halves.rest():
            deltas.append(TextDelta(rest))
        if self._usage:
            deltas.append(_usage(self._usage))
        self._usage = {}

    def _count(self, told: object) -> None:
        """Counts are told at the beginning and, as they stand then, at the end."""
        if isinstance(told, dict):
            self._usage |= {name: count for name, count in told.items() if count is not None}


def _usage(told: dict[str, Any]) -> Usage:
    """`input_tokens` of the wire leaves out what was read from the cache or written to it."""
    fresh = token_count(told.get("input_tokens"))
    read = token_count(told.get("cache_read_input_tokens"))
    written = token_count(told.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        cached_tokens=read,
        output_tokens=token_count(told.get("output_tokens")),
        cache_write_tokens=written,
    )
