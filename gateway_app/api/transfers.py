"""Export and import: conversations as files."""

import asyncio
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, Final, Literal
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Router
from pydantic import Field

from gateway_app.api import schemas
from gateway_app.api.answers import ExportResponse, json_response
from gateway_app.api.callers import HttpCaller, caller_of
from gateway_app.api.errors import ApiError
from gateway_app.selectors.exports import FORMS, export_own_session
from gateway_app.services import imports
from gateway_app.shapes import Shape
from sessions_app.imports import drop_import
from sessions_app.sentences import say

router = Router(tags=["export and import"])

_CHUNK_BYTES: Final = 64 * 1024
_JSONL: Final = frozenset({"application/x-ndjson", "application/jsonl"})

Form = Annotated[Literal["jsonl", "markdown"], Field()]

_FILE: Final[dict[str, Any]] = {
    "description": "The file, as a download.",
    "content": {
        content_type.partition(";")[0]: {"schema": {"type": "string"}}
        for _, _, content_type in FORMS.values()
    },
}


@router.get(
    "/sessions/{uuid:session_id}/export",
    response={schemas.ERRORS: schemas.Error},
    openapi_extra={"responses": {200: _FILE}},
)
async def export_session(
    request: HttpRequest, session_id: UUID, form: Form = "jsonl"
) -> HttpResponseBase:
    """Everything that is seen of the session, as it is at one moment."""
    user_id = caller_of(request).user_id
    # on the request's own thread: a long file would keep those of turns and sockets
    write = sync_to_async(export_own_session)
    return ExportResponse(await write(user_id=user_id, session_id=session_id, form=form))


@router.post(
    "/sessions/import",
    response={201: schemas.OneSession, schemas.ERRORS: schemas.Error},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    },
)
async def import_session(request: HttpRequest) -> HttpResponse:
    """A file that was exported as JSONL, as a new session of the caller's. If one of its lines
    cannot be taken, the answer names it and nothing is imported."""
    caller = caller_of(request)
    if request.content_type not in _JSONL:
        raise ApiError(
            "unsupported", say("Send the file as %(type)s.", type="application/x-ndjson"), 415
        )
    caller.check_start()
    with TemporaryFile() as file:
        await asyncio.to_thread(_receive, request, file, caller.host.config.import_bytes)
        return json_response({"session": await _import(caller, file)}, 201)


def _receive(request: HttpRequest, file: IO[bytes], limit_bytes: int) -> None:
    """The body is in the file. Raises ApiError when it is longer than an import may be."""
    size_bytes = 0
    while piece := request.read(_CHUNK_BYTES):
        size_bytes += len(piece)
        if size_bytes > limit_bytes:
            raise ApiError("too_large", say("A file may have %(limit)s bytes.", limit=limit_bytes))
        file.write(piece)


async def _import(caller: HttpCaller, file: IO[bytes]) -> Shape:
    """As `imports.import_session`, a short write at a time, so that others are not kept waiting."""
    lanes, user_id = caller.host.lanes, caller.user_id
    found = await asyncio.to_thread(imports.check_import, file)
    session_id = await lanes.write(imports.begin, found, user_id)
    try:
        writes = imports.batches(found, session_id, user_id)
        while write := await asyncio.to_thread(next, writes, None):
            await lanes.write(write)
        shape, logged = await lanes.write(imports.finish, session_id, user_id)
    except BaseException:
        await lanes.write(drop_import, session_id)
        raise
    caller.host.hub.publish([logged])
    return shape
