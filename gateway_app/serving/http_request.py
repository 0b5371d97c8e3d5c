"""An HTTP request as this server takes it: its body has a bound, its path no foreign prefix.

Daphne reads a body whole before it asks anybody, credentials included, and holds it in memory.
"""

from typing import Any, Final

from daphne.http_protocol import WebRequest
from django.conf import settings
from django.urls import reverse

from gateway_app.api.errors import error_response
from gateway_app.config import gateway_config
from sessions_app.sentences import say

_MOUNT: Final = b"Daphne-Root-Path"
"""By this header Daphne lets whoever asks say where the site is mounted, in ASCII or with a 500."""


class Request(WebRequest):  # type: ignore[misc]  # Daphne has no types
    """Daphne's request; a body above the limit of its address is refused while it comes."""

    channel: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        # nobody reads what Twisted would make of a form, on the event loop and once more in memory
        super().__init__(*args, **options, parsePOSTFormSubmission=False)
        self._room_bytes = 0
        self._refused = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 Twisted's name
        """The head is there. `length`: what it says of the body; None: that comes in chunks."""
        super().gotLength(length)
        self._room_bytes = body_limit(self.channel._path)
        if length is not None and length > self._room_bytes:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 Twisted's name
        self._room_bytes -= len(data)
        if self._room_bytes < 0:
            self._refuse()
        if not self._refused:
            super().handleContentChunk(data)

    def process(self) -> Any:
        if self._refused:  # it ended before the connection did
            return None
        self.requestHeaders.removeHeader(_MOUNT)
        return super().process()

    def _refuse(self) -> None:
        """Answers and hangs up: what still comes is dropped."""
        if not self._refused:
            self._refused = True
            self.content.truncate(0)
            answer = error_response("too_large", say("This request is too large."))
            head = b"HTTP/1.1 413 Request Entity Too Large\r\nConnection: close\r\n"
            self.channel.transport.write(head + answer.serialize_headers() + b"\r\n\r\n")
            self.channel.transport.write(answer.content)
            self.channel.loseConnection()


def body_limit(uri: bytes) -> int:
    """How many bytes the body of a request to this address may have."""
    if uri.split(b"?", 1)[0] == reverse("api:import_session").encode():
        return gateway_config().import_bytes
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


def take_requests(factory: Any) -> None:
    """From now on Daphne's `factory` makes such requests."""
    build = factory.buildProtocol

    def build_protocol(address: Any) -> Any:
        protocol = build(address)
        protocol.requestFactory = Request
        return protocol

    factory.buildProtocol = build_protocol
