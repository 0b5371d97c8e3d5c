"""One streamed answer of an OpenAI-compatible server, read to its end."""

import asyncio
from typing import Final

import httpx2

from gateway_app.providers.base import Delta, Finish
from gateway_app.providers.openai_errors import CutAnswer
from gateway_app.providers.openai_stream import MAX_LINE_BYTES, AnswerParser, UnreadableAnswer

LAST_BYTES_S: Final = 0.05
"""How long after [DONE] the connection is given to end the response, to be used again."""


class Answer:
    """One response whose body is being read. Must be closed, also after its end."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()
        self._parser = AnswerParser()
        self._over = False

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
        body = bytearray()
        async for piece in self._pieces:
            body += piece
            if len(body) > MAX_LINE_BYTES:
                raise UnreadableAnswer("The answer is too long.")
        self._over = True
        return self._parser.whole(bytes(body))

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
        """Reads what stands after [DONE], so that the connection can be used again."""
        try:
            async with asyncio.timeout(LAST_BYTES_S):
                async for _ in self._pieces:
                    pass
        except (TimeoutError, httpx2.TransportError):
            return

    async def aclose(self) -> None:
        await self._response.aclose()
