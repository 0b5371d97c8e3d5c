"""An HTTP request as this server takes it: its body has a bound, its path no foreign prefix.

Daphne reads a body whole before it asks anybody, credentials included, and holds it in memory. So
bodies are small, but for uploads, which are not read before their sender is known.
"""

import asyncio
from typing import Any, Final
from urllib.parse import unquote

from asgiref.sync import sync_to_async
from daphne.http_protocol import WebRequest
from django.conf import settings
from django.http import HttpResponse
from twisted.internet import reactor

from gateway_app.api.errors import error_response
from gateway_app.api.uploads import refuse_upload, upload_limit
from sessions_app.sentences import say

LINGER_S: Final = 2
"""How long a refused client may take to read why; what it still sends meanwhile is dropped."""
_MOUNT: Final = b"Daphne-Root-Path"
"""By this header Daphne lets whoever asks say where the site is mounted, in ASCII or with a 500."""


class Request(WebRequest):  # type: ignore[misc]  # Daphne has no types
    """Daphne's request; a body above the limit of its address is refused while it comes."""

    channel: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        # nobody reads what Twisted would make of a form, on the event loop and once more in memory
        super().__init__(*args, **options, parsePOSTFormSubmission=False)
        self._room_bytes = 0
        self._refused = self._asking = self._whole = self._waits = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 Twisted's name
        """The head is there. `length`: what it says of the body; None: that comes in chunks."""
        super().gotLength(length)
        uploaded = upload_limit(self._address()[0])
        self._room_bytes = uploaded or int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        if length is not None and length > self._room_bytes:
            self._refuse(_too_large())
        elif uploaded is not None and length != 0:
            self._ask()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 Twisted's name
        self._room_bytes -= len(data)
        if self._room_bytes < 0:
            self._refuse(_too_large())
        if not self._refused:
            super().handleContentChunk(data)

    def process(self) -> Any:
        if self._refused:  # it ended before the connection did
            return None
        if self._asking:
            self._whole = True
            return None
        self.requestHeaders.removeHeader(_MOUNT)
        return super().process()

    def _address(self) -> tuple[str, bytes]:
        """The path, and the query behind it."""
        path, _, query = self.channel._path.partition(b"?")
        return unquote(path.decode("latin-1")), query

    def _scope(self) -> dict[str, Any]:
        """The head, as ASGI has it."""
        path, query = self._address()
        headers = self.requestHeaders.getAllRawHeaders()
        return {
            "type": "http",
            "method": self.channel._command.decode("latin-1"),
            "path": path,
            "query_string": query,
            "headers": [(name.lower(), value) for name, values in headers for value in values],
            "scheme": "https" if self.isSecure() else "http",
        }

    def _ask(self) -> None:
        """Nothing more is read until it is known who sends; what came with the head is kept."""
        self._asking = True
        self._waits = self.requestHeaders.getRawHeaders(b"Expect") is not None
        self.requestHeaders.removeHeader(b"Expect")  # or Twisted would have the body sent at once
        self.channel._networkProducer.pauseProducing()
        self._admitting = asyncio.ensure_future(self._admit(self._scope()))

    async def _admit(self, scope: dict[str, Any]) -> None:
        refused = await sync_to_async(refuse_upload, thread_sensitive=False)(scope)
        self._asking = False
        if self.channel is None or self._refused:  # it left, or sent too much
            return
        if refused is not None:
            self._refuse(refused)
        elif self._whole:
            self.process()
        elif self._waits:
            self.channel._send100Continue()
        self.channel._networkProducer.resumeProducing()

    def _refuse(self, answer: HttpResponse) -> None:
        """Answers and hangs up: what still comes is dropped."""
        if not self._refused:
            self._refused = True
            self.content.truncate(0)
            status = f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}\r\n".encode()
            transport = self.channel.transport
            transport.write(status + b"Connection: close\r\n")
            transport.write(answer.serialize_headers() + b"\r\n\r\n" + answer.content)
            transport.loseWriteConnection()
            reactor.callLater(LINGER_S, self.channel.loseConnection)


def _too_large() -> HttpResponse:
    return error_response("too_large", say("This request is too large."))


def take_requests(factory: Any) -> None:
    """From now on Daphne's `factory` makes such requests."""
    build = factory.buildProtocol

    def build_protocol(address: Any) -> Any:
        protocol = build(address)
        protocol.requestFactory = Request
        return protocol

    factory.buildProtocol = build_protocol
