"""What every wire format reads from a transcript row: its parts, cleaned of what servers refuse.

Pure and deterministic: the same row is the same for ever.
"""

import json
import re
from collections.abc import Sequence
from typing import Final, NoReturn

import msgspec

from sessions_app.signals import TranscriptRow

OPERATOR_PREFIX: Final = "[Written by a person of the team, not by you]\n"

_UNSENDABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""What servers refuse or cut at: NUL, and surrogates that stand alone."""

_ESCAPED: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""Surrogates in JSON text, also in pairs."""
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")


class Part(msgspec.Struct):
    """Any part; which fields must be there depends on `type`."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    call_id: str | None = msgspec.field(name="callId", default=None)
    content: str | None = None
    error: object = None
    signature: object = None
    """Of reasoning: its provider's proof, a text. Like the next and the last, read leniently."""
    data: object = None
    """Of redacted reasoning: the text that its provider wants back."""
    server: object = None
    """Who sent `fields`, which go back to nobody else: both as openai_replay.py has them."""
    fields: object = None


def parts_of(row: TranscriptRow) -> list[Part]:
    """What the model was, or is to be, sent for the row. Raises ValueError."""
    text = row.parts if row.sent_parts is None else row.sent_parts
    try:
        # not msgspec's own decoder: it refuses the surrogates that JSON text may hold
        return msgspec.convert(json.loads(text), list[Part])
    except (ValueError, RecursionError, msgspec.ValidationError) as exc:
        raise ValueError(f"The parts of message {row.id} cannot be read.") from exc


def clean(text: str) -> str:
    return _UNSENDABLE.sub("\ufffd", text)


def dump(message: dict[str, object]) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def needed(value: str | None, field: str) -> str:
    if value is None:
        raise ValueError(f"A part of the message lacks {field!r}.")
    return clean(value)


def joined_text(parts: Sequence[Part], *, ignoring: frozenset[str] = frozenset()) -> str:
    """The text parts, joined. Raises ValueError for a part that is neither text nor ignored."""
    pieces = []
    for part in parts:
        if part.type == "text":
            pieces.append(needed(part.text, "text"))
        elif part.type not in ignoring:
            raise ValueError(f"A part of type {part.type!r} cannot stand in this message.")
    return "".join(pieces)


def call_arguments(text: str | None) -> str:
    """The arguments as the model wrote them; `{}` if they are no JSON object, which servers refuse.

    Escapes of surrogates are written out, and cleaned where one stands alone.
    """
    text = text or ""
    try:
        read = json.loads(text, parse_constant=_no_json)
        if _ESCAPED.search(text):
            text = json.dumps(read, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return "{}"
    return clean(text) if isinstance(read, dict) else "{}"


def _no_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON.")


def call_name(text: str, *, longest: int) -> str:
    """A tool's name, of the characters that servers take in one."""
    return _NOT_IN_NAMES.sub("_", text)[:longest] or "unnamed"


def one_result(parts: Sequence[Part]) -> tuple[str, str]:
    """The call's id and the content of a tool message. Raises ValueError."""
    if len(parts) != 1 or parts[0].type != "tool_result":
        raise ValueError("A tool message must be one result.")
    return needed(parts[0].call_id, "callId"), needed(parts[0].content, "content")


def tool_calls(row: TranscriptRow) -> tuple[str, ...]:
    """The ids of the calls that an assistant row makes, in order. Raises ValueError."""
    if row.kind != "assistant":
        return ()
    return tuple(needed(part.id, "id") for part in parts_of(row) if part.type == "tool_call")


def tool_result_of(row: TranscriptRow) -> str | None:
    """The id of the call that a tool row answers. Raises ValueError."""
    if row.kind != "tool":
        return None
    return one_result(parts_of(row))[0]
