"""What servers of Chat Completions want back beside text and calls: collected, and sent again.

What each documents:

* DeepSeek, Moonshot: `reasoning_content` in every later request once the turn called tools, or
  status 400. Of a turn without calls it is not wanted.
* vLLM, Groq: the same as `reasoning`, for the model's template.
* OpenRouter: `reasoning_details`, whole and in order, for it may be signed or encrypted.
* Gemini: `extra_content` of a tool call, which holds its signature.

Others refuse names that they do not know. So a server gets back what it sent itself, under the
names that it used, and nothing of another server's.
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final

from gateway_app.providers.base import Replay
from gateway_app.providers.failures import UnreadableAnswer
from gateway_app.providers.rows import Part, clean

MAX_DETAILS: Final = 4096
"""Entries of one answer's details; more are a fault of the server."""
BLANKS: Final = {"api.deepseek.com": "", "api.moonshot.ai": " ", "api.moonshot.cn": " "}
"""The hosts that demand reasoning with each call, and what stands for it where there is none, as
with the call of another server's model. Moonshot takes an empty text for none."""

CONTENT: Final = "reasoning_content"
_TEXT: Final = "reasoning"
_DETAILS: Final = "reasoning_details"
_EXTRA: Final = "extra_content"
_SENT_BACK: Final = (CONTENT, _TEXT, _DETAILS)
_GROWING: Final = frozenset({"text", "summary", "data"})
"""Fields of a detail that come in pieces. Of any other one the last value counts."""
_DEEPEST: Final = 32

Json = dict[str, Any]


class ReplayCollector:
    """Takes what comes beside an answer's text; `replay` is what its server wants back of it."""

    def __init__(self, server: str) -> None:
        """`server` names it among others; only the same one is sent anything back."""
        self._server = server
        self._plain: dict[str, list[str]] = {}
        self._details: list[Json] = []
        self._numbered: dict[tuple[str, int], Json] = {}
        self._extra: dict[int, object] = {}

    def take(self, content: str | None, text: str | None, details: object) -> None:
        """The reasoning of one chunk. An empty text counts, none does not.

        Raises UnreadableAnswer.
        """
        if content is not None:
            self._plain.setdefault(CONTENT, []).append(content)
        if text is not None:
            self._plain.setdefault(_TEXT, []).append(text)
        if isinstance(details, list):
            for piece in details:
                if isinstance(piece, dict):
                    self._take_detail(piece)
            if len(self._details) > MAX_DETAILS:
                raise UnreadableAnswer("The answer has too many pieces of reasoning.")

    def take_call(self, index: int, extra: object) -> None:
        """What a call carries beside its own fields."""
        if isinstance(extra, dict):
            self._extra[index] = _sendable(extra)

    def replay(self, text: str, calls: Iterable[int]) -> Replay | None:
        """The whole answer as it goes back; None where its text and calls say everything."""
        fields = self._fields()
        if not fields and not self._extra:
            return None
        parts: list[Json] = []
        if fields:
            parts.append({"type": "server_fields", "server": self._server, "fields": fields})
        if text:
            parts.append({"type": "text", "text": text})
        for index in calls:
            call: Json = {"type": "tool_call", "index": index}
            if index in self._extra:
                call |= {"server": self._server, "fields": {_EXTRA: self._extra[index]}}
            parts.append(call)
        return Replay(tuple(parts), within_calls=not self._details and not self._extra)

    def _take_detail(self, piece: Json) -> None:
        """Pieces of one type and index are one detail."""
        kind, index = piece.get("type"), piece.get("index")
        known: Json | None = None
        if isinstance(kind, str) and type(index) is int:
            known = self._numbered.get((kind, index))
        if known is None:
            known = {}
            self._details.append(known)
            if isinstance(kind, str) and type(index) is int:
                self._numbered[kind, index] = known
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                pieces = known.get(name)
                if not isinstance(pieces, _Pieces):
                    pieces = known[name] = _Pieces()
                pieces.append(value)
            elif value is not None or name not in known:
                known[name] = _sendable(value)

    def _fields(self) -> Json:
        fields: Json = {name: clean("".join(pieces)) for name, pieces in self._plain.items()}
        if self._details:
            fields.pop(_TEXT, None)  # the details say the same, and what proves it
            fields[_DETAILS] = [_whole(detail) for detail in self._details]
        return fields


class _Pieces(list[str]):
    """A text that still grows."""


def _whole(detail: Json) -> Json:
    return {
        name: clean("".join(value)) if isinstance(value, _Pieces) else value
        for name, value in detail.items()
    }


def _sendable(value: object, depth: int = 0) -> object:
    """The value as any server and both databases take it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    if not isinstance(value, dict | list):
        return value
    if depth == _DEEPEST:
        return None
    if isinstance(value, list):
        return [_sendable(one, depth + 1) for one in value]
    return {clean(name): _sendable(one, depth + 1) for name, one in value.items()}


def reasoning_fields(parts: Iterable[Part], server: str) -> Json:
    """What of an assistant's message goes back to its `server` beside text and calls."""
    found: Json = {}
    for part in parts:
        if part.type == "server_fields":
            fields = _fields_for(part, server)
            found |= {name: fields[name] for name in _SENT_BACK if name in fields}
    return found


def call_fields(part: Part, server: str) -> Json:
    """What of a call goes back to its `server` beside its own fields."""
    fields = _fields_for(part, server)
    return {_EXTRA: fields[_EXTRA]} if _EXTRA in fields else {}


def _fields_for(part: Part, server: str) -> Mapping[str, object]:
    return part.fields if part.server == server and isinstance(part.fields, dict) else {}
