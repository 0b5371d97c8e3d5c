"""The bytes of a streamed answer to events: our own line split, shared by every wire format.

Servers differ, so: any chunk boundaries, CRLF, comments, events of several data lines.
"""

import json
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from gateway_app.providers.base import Delta
from gateway_app.providers.failures import UnreadableAnswer

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
MAX_TOKENS: Final = 100_000_000
"""Above any request's; the sum over a turn's steps still fits the database's columns."""

S = TypeVar("S")


class EventStreamParser(ABC):
    """Takes the answer's bytes in any pieces. `feed` returns the deltas that they complete."""

    def __init__(self) -> None:
        self.finished = False
        """Why the model stopped has been read."""
        self.done = False
        """The server has said that nothing more will come."""
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._event: list[bytes] = []
        self._event_bytes = 0

    @abstractmethod
    def whole(self, body: bytes) -> list[Delta]:
        """The deltas of an answer that was not streamed: one JSON object."""

    @abstractmethod
    def _chunk(self, text: bytes, deltas: list[Delta]) -> None:
        """Takes one event's data. Raises UnreadableAnswer, ErrorInAnswer."""

    @abstractmethod
    def _close(self, deltas: list[Delta]) -> None:
        """Adds what had to wait for the end."""

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
        """The deltas of an event that the stream's end completes. Raises ErrorInAnswer."""
        deltas: list[Delta] = []
        line = b"".join(self._pending)
        self._pending.clear()
        # half an event is a cut; whether the answer was over by then, `finished` tells
        with suppress(UnreadableAnswer):
            for last in (line, b""):
                self._line(last, deltas)
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
            if not self.done and (event := event.strip()):
                self._chunk(event, deltas)


def decode(decoder: "msgspec.json.Decoder[S]", text: bytes) -> S:
    """The text as the decoder's type, also where msgspec refuses it. Raises UnreadableAnswer.

    It refuses broken UTF-8, and surrogates that stand alone.
    """
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        value = json.loads(text.decode("utf-8", "replace"))
        found: S = msgspec.convert(value, decoder.type)
        return found
    except (ValueError, RecursionError, msgspec.ValidationError) as exc:
        raise UnreadableAnswer("A chunk of the answer cannot be read.") from exc


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextHalves:
    """Joins a character that came in two halves, as some servers cut it."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, text: str) -> str:
        """The text without lone surrogates; a first half waits for its second half."""
        if text.isascii() and not self._half:
            return text
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return well_formed(text)

    def rest(self) -> str:
        """What stands for a half that stayed alone."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""


def token_count(told: Any) -> int | None:
    """A number of tokens; None for what cannot be one."""
    return told if type(told) is int and 0 <= told <= MAX_TOKENS else None
