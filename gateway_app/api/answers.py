"""Responses of the API: JSON as the websocket's frames have it, and files."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from django.http import HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

from gateway_app.selectors.exports import Export

_CHUNK_BYTES: Final = 64 * 1024
_encode: Final = msgspec.json.Encoder().encode


def json_response(shape: object, status: int = 200) -> HttpResponse:
    """The shape as JSON. It is never kept: what it says is somebody's own, and of now."""
    answer = HttpResponse(_encode(shape), status=status, content_type="application/json")
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer


class ExportResponse(StreamingHttpResponse):
    """A written file as a download, read in pieces; closed when the response is."""

    def __init__(self, export: Export) -> None:
        super().__init__(_pieces(export), content_type=export.content_type)
        self._export = export
        self.headers["Content-Length"] = str(export.size_bytes)
        self.headers["Content-Disposition"] = content_disposition_header(True, export.name) or ""
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Content-Type-Options"] = "nosniff"

    def close(self) -> None:
        super().close()
        self._export.file.close()


async def _pieces(export: Export) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(export.file.read, _CHUNK_BYTES):
        yield piece
