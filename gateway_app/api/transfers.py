"""Export and import: conversations as files."""

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router
from pydantic import Field

from gateway_app.api import schemas
from gateway_app.api.answers import ExportResponse
from gateway_app.api.callers import caller_of
from gateway_app.selectors.exports import FORMS, export_own_session

router = Router(tags=["export and import"])

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
    caller = caller_of(request)
    export = await caller.host.lanes.read(
        export_own_session, user_id=caller.user_id, session_id=session_id, form=form
    )
    return ExportResponse(export)
