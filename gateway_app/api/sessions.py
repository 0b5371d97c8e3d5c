"""Sessions: list, make, read, change, delete, restore."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from gateway_app import protocol, socket_commands
from gateway_app.api import schemas
from gateway_app.api.answers import json_response
from gateway_app.api.bodies import body_of, limits, read_command
from gateway_app.api.callers import caller_of
from gateway_app.selectors import sessions as reads

router = Router(tags=["sessions"])

Limit = Annotated[int, limits(protocol.Limit)]
ONE: dict[Any, Any] = {200: schemas.OneSession, schemas.ERRORS: schemas.Error}


@router.get("/sessions", response={200: schemas.Sessions, schemas.ERRORS: schemas.Error})
async def list_sessions(
    request: HttpRequest,
    query: str | None = None,
    cursor: str | None = None,
    limit: Limit = 50,
    archived: bool = False,
) -> HttpResponse:
    """The caller's sessions, newest activity first. `query` looks for a part of the title."""
    command = protocol.SessionList(query=query, cursor=cursor, limit=limit, archived=archived)
    return json_response(await socket_commands.session_list(caller_of(request), command))


@router.post(
    "/sessions",
    response={201: schemas.MadeSession, schemas.ERRORS: schemas.Error},
    openapi_extra=body_of(protocol.SessionCreate),
)
async def create_session(request: HttpRequest) -> HttpResponse:
    """A new session. The same `clientMessageId` answers with the same session."""
    command = read_command(request, protocol.SessionCreate)
    return json_response(await socket_commands.session_create(caller_of(request), command), 201)


@router.get("/sessions/{uuid:session_id}", response=ONE)
async def read_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """One session."""
    caller = caller_of(request)
    shape = await caller.host.lanes.read(
        reads.read_session, user_id=caller.user_id, session_id=session_id
    )
    return json_response({"session": shape})


@router.patch(
    "/sessions/{uuid:session_id}",
    response=ONE,
    openapi_extra=body_of(protocol.SessionUpdate, "session_id"),
)
async def update_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Changes what is given. A new agent or model counts from the next turn on."""
    command = read_command(request, protocol.SessionUpdate, session_id=session_id)
    return json_response(await socket_commands.session_update(caller_of(request), command))


@router.delete("/sessions/{uuid:session_id}", response={204: None, schemas.ERRORS: schemas.Error})
async def delete_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The session is gone from every list; `restore` brings it back within 30 days."""
    command = protocol.SessionDelete(session_id=session_id)
    await socket_commands.session_delete(caller_of(request), command)
    return HttpResponse(status=204)


@router.post("/sessions/{uuid:session_id}/restore", response=ONE)
async def restore_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """A deleted session is back."""
    command = protocol.SessionRestore(session_id=session_id)
    return json_response(await socket_commands.session_restore(caller_of(request), command))
