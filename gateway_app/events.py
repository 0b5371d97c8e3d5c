"""AG-UI events, encoded once. Field names and types are those of `ag_ui.core` 1.0.

What is ours rides in `metadata.hermes` or in CUSTOM events named `hermes.*`.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from sessions_app.sentences import Sentence

_encode = msgspec.json.Encoder().encode


def run_id(turn_id: UUID, generation: int) -> str:
    """A run is one attempt at a turn; its generation tells it from the others."""
    return f"{turn_id}.{generation}"


def run_started(session_id: UUID, turn_id: UUID, generation: int) -> bytes:
    return _encode(
        {
            "type": "RUN_STARTED",
            "threadId": str(session_id),
            "runId": run_id(turn_id, generation),
            "protocolVersion": "1.0",
        }
    )


def run_finished(
    session_id: UUID,
    turn_id: UUID,
    generation: int,
    *,
    cancelled: bool,
    usage: Mapping[str, Any] | None,
    facts: Mapping[str, Any],
) -> bytes:
    """`facts` is what `metadata.hermes` holds; `usage` one AG-UI TokenUsage, if it is known."""
    event: dict[str, Any] = {
        "type": "RUN_FINISHED",
        "threadId": str(session_id),
        "runId": run_id(turn_id, generation),
        "outcome": {"type": "cancelled" if cancelled else "success"},
        "metadata": {"hermes": dict(facts)},
    }
    if usage:
        event["usage"] = [dict(usage)]
    return _encode(event)


def run_error(code: str, sentence: Sentence, facts: Mapping[str, Any]) -> bytes:
    own = {**facts, "sentences": sentence.shape()}
    event = {"type": "RUN_ERROR", "message": str(sentence), "code": code}
    return _encode(event | {"metadata": {"hermes": own}})


def text_start(message_id: UUID) -> bytes:
    return _encode(
        {"type": "TEXT_MESSAGE_START", "messageId": str(message_id), "role": "assistant"}
    )


def text_content(message_id: str, delta: str) -> bytes:
    return _encode({"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": delta})


def text_end(message_id: UUID) -> bytes:
    return _encode({"type": "TEXT_MESSAGE_END", "messageId": str(message_id)})


def reasoning_id(message_id: UUID) -> UUID:
    """The span of a message's reasoning has an id of its own, derived from the message's."""
    return UUID(int=message_id.int ^ 1)


def reasoning_start(message_id: UUID) -> list[bytes]:
    name = str(message_id)
    return [
        _encode({"type": "REASONING_START", "messageId": name}),
        _encode({"type": "REASONING_MESSAGE_START", "messageId": name, "role": "reasoning"}),
    ]


def reasoning_content(message_id: str, delta: str) -> bytes:
    return _encode({"type": "REASONING_MESSAGE_CONTENT", "messageId": message_id, "delta": delta})


def reasoning_end(message_id: UUID) -> list[bytes]:
    name = str(message_id)
    return [
        _encode({"type": "REASONING_MESSAGE_END", "messageId": name}),
        _encode({"type": "REASONING_END", "messageId": name}),
    ]


def tool_call(message_id: UUID, call_id: str, name: str, arguments: str) -> list[bytes]:
    """A whole tool call: its arguments in one piece."""
    start = {
        "type": "TOOL_CALL_START",
        "toolCallId": call_id,
        "toolCallName": name,
        "parentMessageId": str(message_id),
    }
    return [
        _encode(start),
        _encode({"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": arguments}),
        _encode({"type": "TOOL_CALL_END", "toolCallId": call_id}),
    ]


def tool_result(
    message_id: UUID, call_id: str, content: str, facts: Mapping[str, Any] | None = None
) -> bytes:
    """`facts`: what `metadata.hermes` holds, `error` and `durationMs`."""
    event: dict[str, Any] = {
        "type": "TOOL_CALL_RESULT",
        "messageId": str(message_id),
        "toolCallId": call_id,
        "content": content,
        "role": "tool",
    }
    if facts:
        event["metadata"] = {"hermes": dict(facts)}
    return _encode(event)


def custom(name: str, value: object) -> bytes:
    return _encode({"type": "CUSTOM", "name": f"hermes.{name}", "value": value})


def committed(from_revision: int, revision: int, ids: Sequence[UUID]) -> bytes:
    return custom(
        "committed",
        {"fromRevision": from_revision, "revision": revision, "ids": [str(name) for name in ids]},
    )


def rewritten(from_position: int, revision: int) -> bytes:
    return custom("rewritten", {"fromPosition": from_position, "revision": revision})


def frame(session_id: UUID, turn_id: UUID | None, seq: int, prev: int, event: bytes) -> str:
    """The envelope of one event, as it goes to a client."""
    turn = f'"turnId":"{turn_id}",' if turn_id else ""
    return (
        f'{{"sessionId":"{session_id}",{turn}"seq":{seq},"prev":{prev},"event":{event.decode()}}}'
    )
