"""OpenAI's Chat Completions as a wire format: transcript rows to messages, messages to a body.

Pure and deterministic: the same row is the same text for ever. Change anything that changes a
byte and `OpenAIChatWire.name` must get the next version.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID

import msgspec

from gateway_app.providers.base import Prompt, RequestSettings
from sessions_app.signals import TranscriptRow

OPERATOR_PREFIX: Final = "[Written by a person of the team, not by you]\n"

_UNSENDABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""What servers refuse or cut at: NUL, and surrogates that stand alone."""


class _Part(msgspec.Struct):
    """Any part; which fields must be there depends on `type`."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    call_id: str | None = msgspec.field(name="callId", default=None)
    content: str | None = None


def _parts(row: TranscriptRow) -> list[_Part]:
    """What the model was, or is to be, sent for the row. Raises ValueError."""
    text = row.parts if row.sent_parts is None else row.sent_parts
    try:
        # not msgspec's own decoder: it refuses the surrogates that JSON text may hold
        return msgspec.convert(json.loads(text), list[_Part])
    except (ValueError, RecursionError, msgspec.ValidationError) as exc:
        raise ValueError(f"The parts of message {row.id} cannot be read.") from exc


def _clean(text: str) -> str:
    return _UNSENDABLE.sub("\ufffd", text)


def _dump(message: dict[str, object]) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def _need(value: str | None, field: str) -> str:
    if value is None:
        raise ValueError(f"A part of the message lacks {field!r}.")
    return _clean(value)


def _text(parts: Sequence[_Part], *, ignoring: frozenset[str] = frozenset()) -> str:
    """The text parts, joined. Raises ValueError for a part that is neither text nor ignored."""
    pieces = []
    for part in parts:
        if part.type == "text":
            pieces.append(_need(part.text, "text"))
        elif part.type not in ignoring:
            raise ValueError(f"A part of type {part.type!r} cannot stand in this message.")
    return "".join(pieces)


def _call_arguments(text: str | None) -> str:
    """The arguments as the model wrote them; `{}` if they are no JSON, which servers refuse."""
    try:
        json.loads(text or "")
    except (ValueError, RecursionError):
        return "{}"
    return _clean(text or "")


def _assistant(parts: Sequence[_Part]) -> dict[str, object]:
    text = _text(parts, ignoring=frozenset({"reasoning", "tool_call"}))
    calls = [
        {
            "id": _need(part.id, "id"),
            "type": "function",
            "function": {
                "name": _need(part.name, "name"),
                "arguments": _call_arguments(part.arguments),
            },
        }
        for part in parts
        if part.type == "tool_call"
    ]
    if not calls:
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _tool(parts: Sequence[_Part]) -> dict[str, object]:
    if len(parts) != 1 or parts[0].type != "tool_result":
        raise ValueError("A tool message must be one result.")
    call_id, content = _need(parts[0].call_id, "callId"), _need(parts[0].content, "content")
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _message(kind: str, parts: Sequence[_Part]) -> dict[str, object]:
    match kind:
        case "user":
            return {"role": "user", "content": _text(parts)}
        case "assistant":
            return _assistant(parts)
        case "tool":
            return _tool(parts)
        case "operator":
            return {"role": "assistant", "content": OPERATOR_PREFIX + _text(parts)}
        case "notice":
            return {"role": "assistant", "content": f"[Notice: {_text(parts)}]"}
        case "summary":
            content = f"[Summary of the conversation until here: {_text(parts)}]"
            return {"role": "user", "content": content}
        case "system":
            return {"role": "system", "content": _text(parts)}
    raise ValueError(f"The model does not see messages of kind {kind!r}.")


@lru_cache(maxsize=256)
def _system_piece(system: str) -> str:
    return _dump({"role": "system", "content": _clean(system)})


class OpenAIChatWire:
    """The wire of OpenAI and of every server that is compatible with it."""

    name = "openai-chat/1"

    def __init__(self, *, official: bool = False) -> None:
        """`official`: the server is OpenAI's own, which knows a cache hint and newer names."""
        self._official = official

    def encode(self, row: TranscriptRow) -> str:
        """The row's message as JSON text. Raises ValueError for parts that cannot be read."""
        return _dump(_message(row.kind, _parts(row)))

    def body(
        self,
        *,
        model: str,
        prompt: Prompt,
        pieces: Sequence[str],
        settings: RequestSettings,
        session_id: UUID,
    ) -> bytes:
        """The request body; what stands before the first message is equal all session long."""
        head: dict[str, object] = {"model": _clean(model)}
        if settings.temperature is not None:
            head["temperature"] = settings.temperature
        if settings.max_output_tokens is not None:
            limit = "max_completion_tokens" if self._official else "max_tokens"
            head[limit] = settings.max_output_tokens
        head["stream"] = True
        head["stream_options"] = {"include_usage": True}
        if self._official:
            head["prompt_cache_key"] = str(session_id)
        tools = "" if prompt.tools == "[]" else f',"tools":{prompt.tools}'
        messages = [_system_piece(prompt.system), *pieces] if prompt.system else pieces
        body = f'{_dump(head)[:-1]}{tools},"messages":[{",".join(messages)}]}}'
        return body.encode(errors="replace")


def tool_calls(row: TranscriptRow) -> tuple[str, ...]:
    """The ids of the calls that an assistant row makes, in order. Raises ValueError."""
    if row.kind != "assistant":
        return ()
    return tuple(_need(part.id, "id") for part in _parts(row) if part.type == "tool_call")


def tool_result_of(row: TranscriptRow) -> str | None:
    """The id of the call that a tool row answers. Raises ValueError."""
    if row.kind != "tool":
        return None
    call_id = _tool(_parts(row))["tool_call_id"]
    return str(call_id)
