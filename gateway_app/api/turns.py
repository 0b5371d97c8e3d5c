"""Turns: what became of a message."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language
from ninja import Router

from gateway_app import protocol, socket_commands
from gateway_app.api import schemas
from gateway_app.api.answers import json_response
from gateway_app.api.bodies import body_of, read_command
from gateway_app.api.callers import caller_of
from gateway_app.api.sessions import Limit
from gateway_app.selectors import turns as reads

router = Router(tags=["turns"])


@router.get(
    "/sessions/{uuid:session_id}/turns",
    response={200: schemas.Turns, schemas.ERRORS: schemas.Error},
)
async def list_turns(
    request: HttpRequest, session_id: UUID, cursor: str | None = None, limit: Limit = 50
) -> HttpResponse:
    """The turns of a session, newest first, those that wait included."""
    caller = caller_of(request)
    page = await caller.host.lanes.read(
        reads.list_turns,
        user_id=caller.user_id,
        session_id=session_id,
        cursor=cursor,
        limit=limit,
        language=get_language(),
    )
    return json_response(page)


@router.get("/turns/{uuid:turn_id}", response={200: schemas.OneTurn, schemas.ERRORS: schemas.Error})
async def read_turn(request: HttpRequest, turn_id: UUID) -> HttpResponse:
    """One turn: its state, what it took, how it ended."""
    caller = caller_of(request)
    shape = await caller.host.lanes.read(
        reads.read_turn, user_id=caller.user_id, turn_id=turn_id, language=get_language()
    )
    return json_response({"turn": shape})


@router.post(
    "/turns/{uuid:turn_id}/stop",
    response={202: schemas.Empty, schemas.ERRORS: schemas.Error},
    openapi_extra=body_of(protocol.TurnStop, "session_id", "turn_id", optional=True),
)
async def stop_turn(request: HttpRequest, turn_id: UUID) -> HttpResponse:
    """The turn ends within two seconds, or does not begin. Idempotent."""
    command = read_command(request, protocol.TurnStop, optional=True, turn_id=turn_id)
    command.session_id = None
    return json_response(await socket_commands.turn_stop(caller_of(request), command), 202)
