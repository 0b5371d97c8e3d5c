"""Messages: the history of a session, and sending."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from gateway_app import protocol, socket_commands
from gateway_app.api import schemas
from gateway_app.api.answers import json_response
from gateway_app.api.bodies import body_of, read_command
from gateway_app.api.callers import caller_of
from gateway_app.api.sessions import Limit
from gateway_app.api.told import tell_history

router = Router(tags=["messages"])


@router.get(
    "/sessions/{uuid:session_id}/messages",
    response={200: schemas.History, schemas.ERRORS: schemas.Error},
)
async def read_history(
    request: HttpRequest, session_id: UUID, before: str | None = None, limit: Limit = 50
) -> HttpResponse:
    """The latest rows, or those before a cursor, oldest first."""
    command = protocol.SessionHistory(session_id=session_id, before=before, limit=limit)
    page = await socket_commands.session_history(caller_of(request), command)
    return json_response(tell_history(page))


@router.post(
    "/sessions/{uuid:session_id}/messages",
    response={202: schemas.Sent, schemas.ERRORS: schemas.Error},
    openapi_extra=body_of(protocol.MessageSend, "session_id"),
)
async def send_message(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The message is stored, and its turn runs or waits. Send it again with the same
    `clientMessageId` whenever no answer came: it is taken once."""
    command = read_command(request, protocol.MessageSend, session_id=session_id)
    return json_response(await socket_commands.message_send(caller_of(request), command), 202)
