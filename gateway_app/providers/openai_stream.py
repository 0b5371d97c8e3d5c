"""The events of a Chat Completions answer to deltas, by msgspec structs.

The SDK's event objects cost 170 us a token, this 3-5. Servers differ, so: `usage: null`, unknown
and missing fields, reasoning under several names, calls without numbers.
"""

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
from gateway_app.providers.event_stream import (
    EventStreamParser,
    TextHalves,
    decode,
    token_count,
    well_formed,
)
from gateway_app.providers.failures import ErrorInAnswer
from gateway_app.providers.openai_replay import ReplayCollector

_REASONS: Final = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: object = None


class _Content(msgspec.Struct):
    """One part of a content list, as a few servers send it."""

    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Content] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: object = None
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


_DECODER: Final = msgspec.json.Decoder(_Chunk)


class OpenAIAnswerParser(EventStreamParser):
    """Reads chunks; without a stream the one object that stands for them all."""

    def __init__(self, server: str) -> None:
        """`server`: as `ReplayCollector` has it."""
        super().__init__()
        self._replay = ReplayCollector(server)
        self._texts: list[str] = []
        self._numbers: set[int] = set()
        self._halves = TextHalves()
        self._refused = False
        self._calls: dict[str, int] = {}
        self._whole = False
        self._usage: dict[str, object] | None = None

    def whole(self, body: bytes) -> list[Delta]:
        deltas: list[Delta] = []
        self._whole = True
        self._chunk(body.strip(), deltas)
        self._close(deltas)
        return deltas

    def _chunk(self, text: bytes, deltas: list[Delta]) -> None:
        if text == b"[DONE]":
            self.done = True
            self._close(deltas)
            return
        chunk = decode(_DECODER, text)
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
                deltas.append(ReasoningDelta(well_formed(reasoning)))
            self._replay.take(
                message.reasoning_content, message.reasoning, message.reasoning_details
            )
            content = message.content or message.refusal
            self._refused = self._refused or bool(message.refusal)
            if isinstance(content, list):
                content = "".join(part.text for part in content)
            if content and (text := self._halves.take(content)):
                self._texts.append(text)
                deltas.append(TextDelta(text))
            if message.tool_calls:
                deltas.extend(self._call(call) for call in message.tool_calls)
        reason = choice.finish_reason
        if reason == "error":
            raise ErrorInAnswer(None)
        if reason and not self.finished:
            self.finished = True
            replay = self._replay.replay("".join(self._texts), sorted(self._numbers))
            if replay is not None:
                deltas.append(replay)
            deltas.append(Finish("refused" if self._refused else _REASONS.get(reason, "stop")))

    def _close(self, deltas: list[Delta]) -> None:
        """Adds half a character that stayed alone, and the last usage told."""
        if rest := self._halves.rest():
            deltas.append(TextDelta(rest))
        if self._usage is not None:
            deltas.append(_usage(self._usage))
        self._usage = None

    def _call(self, call: _ToolCall) -> ToolCallDelta:
        function = call.function or _Function()
        index = self._number(call.id, function.name) if call.index is None else call.index
        if call.id:
            self._calls.setdefault(call.id, index)
        self._numbers.add(index)
        self._replay.take_call(index, call.extra_content)
        return ToolCallDelta(
            index=index,
            id=well_formed(call.id or "") or None,
            name=well_formed(function.name or "") or None,
            arguments=well_formed(function.arguments or ""),
        )

    def _number(self, call_id: str | None, name: str | None) -> int:
        """Of a call, or a piece of one, that carries none: a new id or a name begins a new call."""
        latest = max(self._numbers, default=-1)
        if self._whole:
            return latest + 1
        if call_id and call_id in self._calls:
            return self._calls[call_id]
        return latest + 1 if call_id or name else max(latest, 0)


def _usage(told: dict[str, object]) -> Usage:
    details = told.get("prompt_tokens_details")
    cached = token_count(details.get("cached_tokens")) if isinstance(details, dict) else None
    if cached is None:
        cached = token_count(told.get("prompt_cache_hit_tokens"))
    return Usage(
        input_tokens=token_count(told.get("prompt_tokens")),
        cached_tokens=cached,
        output_tokens=token_count(told.get("completion_tokens")),
    )
