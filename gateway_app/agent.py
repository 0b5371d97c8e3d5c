"""One turn of the agent: model step, tool calls, results, ... , final answer.

Pure async: it knows its port and the provider, and neither Django nor sockets. What a person may
have seen so far stands in the `Draft`, so that whoever stops the loop can keep it.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import groupby
from time import monotonic
from typing import Any, Final, Literal, Protocol, cast
from uuid import UUID

from gateway_app.providers.base import (
    Delta,
    Finish,
    ModelInvalid,
    ModelRefused,
    ModelRequest,
    ProviderError,
    ReasoningDelta,
    Replay,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from gateway_app.providers.call_ids import is_call_id
from sessions_app.sentences import say

MAX_STEPS: Final = 12
MAX_CALLS: Final = 64
"""Tool calls in one step."""
MAX_CHARACTERS: Final = 4_000_000
"""Text and reasoning of one step; an answer beyond it is a fault of the model or its server."""
EMPTY_RETRIES: Final = 1
"""Blank answers of a turn after which the model is asked again."""


class TurnLimit(ProviderError):
    """The turn grew beyond what any answer needs."""

    code = "limit"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model made it; `arguments` is its JSON text, as sent."""

    id: str
    name: str
    arguments: str

    def part(self) -> dict[str, Any]:
        """The part of its message's row."""
        return {
            "type": "tool_call", "id": self.id, "name": self.name, "arguments": self.arguments,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call. `message_id` is its row's; `error` may be "unknown": nobody knows."""

    message_id: UUID
    call_id: str
    content: str
    error: bool | Literal["unknown"] = False
    duration_ms: int | None = None

    def facts(self) -> dict[str, Any]:
        """What is told of it beside its content, where there is anything to tell."""
        facts: dict[str, Any] = {"error": self.error} if self.error else {}
        return facts if self.duration_ms is None else facts | {"durationMs": self.duration_ms}

    def part(self) -> dict[str, Any]:
        """The part of its message's row."""
        named = {"type": "tool_result", "callId": self.call_id, "content": self.content}
        return named | self.facts()


@dataclass(slots=True)
class Draft:
    """The answer of one model step as far as it has come."""

    message_id: UUID
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: dict[str, ToolResult] = field(default_factory=dict)
    """By call, for every call once the first of them is shown: as far as is known by now."""
    open_calls: set[str] = field(default_factory=set)
    """Calls that are shown, while no result of theirs is."""
    replay: Replay | None = None
    """How the provider wants the answer back, as far as that is told."""
    sent: list[dict[str, Any]] | None = None
    """The parts that the provider wants back, where they say more than `parts`."""
    finish: str | None = None
    characters: int = 0
    begun: bool = False
    """The model has begun to answer: another one may not take over."""
    text_open: bool = False
    reasoning_open: bool = False
    reasoning_s: float = 0.0
    """How long the model thought, as far as that is over."""
    _reasoning_since: float = 0.0

    def open_reasoning(self) -> None:
        self.reasoning_open, self._reasoning_since = True, monotonic()

    def close_reasoning(self) -> None:
        self.reasoning_open = False
        self.reasoning_s += monotonic() - self._reasoning_since

    @property
    def empty(self) -> bool:
        return not (self.calls or "".join(self.text).strip())

    def parts(self) -> list[dict[str, Any]]:
        """The parts of its message row: reasoning, text, tool calls."""
        parts: list[dict[str, Any]] = []
        if self.reasoning:
            duration = {"durationMs": round(self.reasoning_s * 1000)} if self.reasoning_s else {}
            parts.append({"type": "reasoning", "text": "".join(self.reasoning), **duration})
        if self.text:
            parts.append({"type": "text", "text": "".join(self.text)})
        parts += [call.part() for call in self.calls]
        return parts


class Port(Protocol):
    """What a turn gives its agent."""

    def new_draft(self) -> Draft:
        """The draft of the next step; from now on it is the turn's current one."""
        ...

    async def next_request(self) -> ModelRequest:
        """The next request, coherent with the transcript as it is now."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Delta]]:
        """The provider's answer."""
        ...

    def show_text(self, draft: Draft, text: str) -> None: ...

    def show_reasoning(self, draft: Draft, text: str) -> None: ...

    def count_usage(self, usage: Usage) -> None: ...

    async def fall_back(self, error: ProviderError) -> ProviderError | None:
        """The model failed before it began. None: the next request goes to another one.

        Otherwise the error that the turn ends with.
        """
        ...

    async def call_tools(self, draft: Draft) -> None:
        """The draft holds the result of each of its calls. None is made before it is durable."""
        ...

    async def commit_step(self, draft: Draft) -> None:
        """The calls and their results are durable before the next model call."""
        ...


async def run_turn(port: Port) -> Draft:
    """The final answer. Raises ProviderError; cancelling leaves the draft as it stood."""
    retries, called = 0, False
    for _ in range(MAX_STEPS):
        draft = await _model_step(port, called)
        if draft.empty:
            if draft.finish in {"content_filter", "length"} or retries == EMPTY_RETRIES:
                raise without_answer(draft.finish)
            retries += 1
            continue
        if draft.finish == "length" and draft.calls:
            draft.calls = []
            raise ModelInvalid(
                say(
                    "The model reached its limit in the middle of a tool call, which was not made."
                    " Your message is kept. Ask for less, or raise the agent's limit."
                )
            )
        if not draft.calls and draft.finish != "pause":
            return draft
        called = called or bool(draft.calls)
        await port.call_tools(draft)
        await port.commit_step(draft)
    raise TurnLimit(
        say(
            "The agent used tools %(count)s times without an answer and was stopped. Ask for less"
            " at once.",
            count=MAX_STEPS,
        )
    )


def without_answer(finish: str | None) -> ProviderError:
    """The error for an answer without a word or a call."""
    if finish == "content_filter":
        return ModelRefused(
            say("The provider's filter withheld this answer. Say it in other words.")
        )
    if finish == "length":
        return ModelInvalid(
            say(
                "The model reached its limit before it began to answer. Your message is kept. Ask"
                " for less, or raise the agent's limit."
            )
        )
    return ModelInvalid(say("The model gave an empty answer. Your message is kept; try again."))


async def _model_step(port: Port, called: bool) -> Draft:
    draft = port.new_draft()
    while True:
        try:
            await _read_answer(port, draft, called)
        except ProviderError as exc:
            if draft.begun:
                raise
            final = await port.fall_back(exc)
        else:
            return draft
        if final is not None:
            raise final  # outside `except`: one failure is one error


async def _read_answer(port: Port, draft: Draft, called: bool) -> None:
    """The draft holds the whole answer to the next request; `called`: the turn has used tools."""
    request = await port.next_request()
    calls: dict[int, _CallPieces] = {}
    stream = cast("Any", port.stream(request))
    async with aclosing(stream):
        async for batch in stream:
            for delta in _joined(batch) if len(batch) > 1 else batch:
                _take(port, draft, calls, delta)
    taken = set(request.call_ids)
    whole = {
        index: calls[index].whole(f"call_{draft.message_id.hex[-12:]}_{number}", taken)
        for number, index in enumerate(sorted(calls))
    }
    draft.calls = list(whole.values())
    if draft.replay is not None and (called or whole or not draft.replay.within_calls):
        draft.sent = _sent(draft.replay.parts, whole)


def _sent(
    parts: Sequence[Mapping[str, Any]], calls: Mapping[int, ToolCall]
) -> list[dict[str, Any]]:
    """The parts to send back, with the calls as they were made here."""
    sent = []
    for part in parts:
        if part["type"] != "tool_call":
            sent.append(dict(part))
        elif part["index"] in calls:
            beside = {name: part[name] for name in ("server", "fields") if name in part}
            sent.append(calls[part["index"]].part() | beside)
    return sent


@dataclass(slots=True)
class _CallPieces:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def whole(self, own: str, taken: set[str]) -> ToolCall:
        """The call; `own` is its id where the model gave none, or one that is `taken`."""
        call_id = self.id if is_call_id(self.id) and self.id not in taken else own
        taken.add(call_id)
        return ToolCall(call_id, self.name, "".join(self.arguments) or "{}")


def _joined(batch: Sequence[Delta]) -> Iterator[Delta]:
    """The same deltas, with texts that follow one another as one."""
    for kind, run in groupby(batch, type):
        if kind is TextDelta or kind is ReasoningDelta:
            yield kind("".join(delta.text for delta in cast("Iterator[TextDelta]", run)))
        else:
            yield from run


def _count(draft: Draft, calls: dict[int, _CallPieces], text: str) -> None:
    """Raises TurnLimit for a step without end; what came before is kept."""
    draft.begun = True
    draft.characters += len(text)
    if draft.characters > MAX_CHARACTERS or len(calls) > MAX_CALLS:
        raise TurnLimit(
            say("The model did not come to an end and was stopped. What it wrote so far is kept.")
        )


def _take(port: Port, draft: Draft, calls: dict[int, _CallPieces], delta: Delta) -> None:
    match delta:
        case TextDelta(text) if text:
            _count(draft, calls, text)
            draft.text.append(text)
            port.show_text(draft, text)
        case ReasoningDelta(text) if text:
            _count(draft, calls, text)
            draft.reasoning.append(text)
            port.show_reasoning(draft, text)
        case ToolCallDelta(index, call_id, name, arguments):
            pieces = calls.setdefault(index, _CallPieces())
            pieces.id = pieces.id or call_id or ""
            pieces.name = pieces.name or name or ""
            pieces.arguments.append(arguments)
            _count(draft, calls, f"{call_id or ''}{name or ''}{arguments}")
        case Usage():
            port.count_usage(delta)
        case Finish(reason):
            draft.finish = reason
        case Replay():
            draft.replay = delta
        case _:
            pass
