"""A model server that costs little itself: Chat Completions over loopback, paced by model name.

The model `t200` answers with 200 tokens as fast as they go out, `t200-d12` with one each 12 ms; a
token is a write of its own, as servers send them. `python -m bench.model_server` prints its URL.
"""

import asyncio
import re
import sys

_MODEL = re.compile(rb'"model":\s*"t(\d+)(?:-d(\d+))?')
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _piece(body: str) -> bytes:
    """One server-sent event as one chunk of the response."""
    event = f"data: {body}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def _chunk(delta: str, finish: str = "null") -> bytes:
    return _piece(
        '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench",'
        f'"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}'
    )


_TOKEN = _chunk('{"content":"token "}')
_LAST = (
    _chunk("{}", '"stop"')
    + _piece('{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10}}')
    + _piece("[DONE]")
    + b"0\r\n\r\n"
)


class ModelConnection(asyncio.Protocol):
    """One client's connection: requests one after another, each answered with a paced stream."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.received = b""

    def data_received(self, piece: bytes) -> None:
        self.received += piece
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return
        length = re.search(rb"content-length:\s*(\d+)", head, re.IGNORECASE)
        if length is None or len(body) < int(length[1]):
            return
        self.received = b""
        asked = _MODEL.search(body)
        tokens, delay_ms = (int(asked[1]), int(asked[2] or 0)) if asked else (1, 0)
        self.transport.write(_HEAD)
        self._send(tokens, delay_ms / 1000, self.loop.time())

    def _send(self, left: int, delay_s: float, due: float) -> None:
        """Sends a token; the next one is due `delay_s` after this one was, however late it is."""
        if self.transport.is_closing():
            return
        if not left:
            self.transport.write(_LAST)
            return
        self.transport.write(_TOKEN)
        due += delay_s
        if delay_s:
            self.loop.call_at(due, self._send, left - 1, delay_s, due)
        else:
            self.loop.call_soon(self._send, left - 1, delay_s, due)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(
        ModelConnection, "127.0.0.1", 0, backlog=1024
    )
    host, port = server.sockets[0].getsockname()
    sys.stdout.write(f"http://{host}:{port}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
