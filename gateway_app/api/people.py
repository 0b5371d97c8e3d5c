"""The caller, and what they used."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from gateway_app.api import schemas
from gateway_app.api.answers import json_response
from gateway_app.api.callers import caller_of
from gateway_app.api.errors import ApiError
from gateway_app.selectors import usage
from sessions_app.sentences import say

router = Router(tags=["me"])

Days = Annotated[int, Field(ge=1, le=usage.MAX_DAYS)]


@router.get("/me", url_name="me", response={200: schemas.Me, schemas.ERRORS: schemas.Error})
async def me(request: HttpRequest) -> HttpResponse:
    """Who the caller is; 401 tells a page to log in again."""
    user = caller_of(request).user
    shape = {"id": user.pk, "name": user.get_username(), "isStaff": user.is_staff}
    return json_response(shape)


@router.get("/usage", response={200: schemas.UsageReport, schemas.ERRORS: schemas.Error})
async def read_usage(request: HttpRequest, days: Days = 30, everyone: bool = False) -> HttpResponse:
    """Tokens and cost of the last days, by day, agent and model: the caller's own turns, or
    everyone's, for operators who may view turns."""
    caller = caller_of(request)
    lanes = caller.host.lanes
    if everyone and not await lanes.read(usage.may_see_everyone, caller.user):
        raise ApiError("forbidden", say("Only operators who may view turns see what others used."))
    author_id = None if everyone else caller.user_id
    return json_response(await lanes.read(usage.read_usage, author_id=author_id, days=days))
