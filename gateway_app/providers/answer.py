"""One answer of a model's server, read to its end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import httpx2

from gateway_app.providers.base import Delta, Finish
from gateway_app.providers.event_stream import MAX_LINE_BYTES, EventStreamParser
from gateway_app.providers.failures import CutAnswer, UnreadableAnswer, WebPage

LAST_BYTES_S: Final = 0.05
"""How long after the answer the connection is given to end the response, to be used again."""

_STREAM_TYPES: Final = frozenset(
    {"text/event-stream", "text/plain", "application/x-ndjson", "application/octet-stream"}
)
"""What servers call a stream; anything else, such as HTML, is none."""


class Answer:
    """One response whose body is being read. Must be closed, also after its end."""

    def __init__(self, response: httpx2.Response, parser: EventStreamParser) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()
        self._parser = parser
        self._over = False

    async def begin(self) -> list[Delta]:
        """The first deltas, never none. Raises one of TRANSPORT_FAILURES."""
        kind = self._response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":
            return await self.read_whole() or [Finish("stop")]
        if kind and kind not in _STREAM_TYPES:
            raise WebPage
        while (deltas := await self.read()) is not None:
            if deltas:
                return deltas
        raise CutAnswer

    async def read(self) -> list[Delta] | None:
        """The deltas of the next piece, or None after the end. Raises one of FAILURES."""
        if self._over:
            return None
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            return self._end()
        except httpx2.TransportError:
            if not self._parser.finished:
                raise
            return self._end()
        deltas = self._parser.feed(piece)
        if self._parser.done:
            await self._finish_response()
            deltas += self._end()
        return deltas

    async def read_whole(self) -> list[Delta]:
        """The deltas of an answer that was not streamed."""
        body = await read_bounded(self._pieces)
        self._over = True
        return self._parser.whole(body)

    def _end(self) -> list[Delta]:
        """The last deltas. Raises CutAnswer if the answer is not complete."""
        self._over = True
        deltas = self._parser.end()
        if not self._parser.finished:
            if not self._parser.done:
                raise CutAnswer
            deltas.append(Finish("stop"))
        return deltas

    async def _finish_response(self) -> None:
        """Reads what stands after the end, so that the connection can be used again."""
        try:
            async with asyncio.timeout(LAST_BYTES_S):
                async for _ in self._pieces:
                    pass
        except (TimeoutError, httpx2.TransportError):
            return

    async def aclose(self) -> None:
        await self._response.aclose()


async def read_bounded(pieces: AsyncIterator[bytes]) -> bytes:
    """All of a body. Raises UnreadableAnswer for one without end."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > MAX_LINE_BYTES:
            raise UnreadableAnswer("The answer is too long.")
    return bytes(body)
