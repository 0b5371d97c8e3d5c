"""The tools that Hermes brings along. An agent has none until somebody gives it some."""

from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from gateway_app.selectors.sessions import list_sessions
from gateway_app.tools import ToolContext, ToolError, tool


@tool
def current_time(
    timezone: Annotated[
        str, Field(description="An IANA name such as Europe/Berlin.", max_length=64)
    ] = "UTC",
) -> str:
    """Tell the date, the weekday and the time."""
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ToolError(f"There is no time zone {timezone!r}.") from exc
    return datetime.now(zone).strftime("%A, %Y-%m-%d %H:%M %Z")


@tool
def search_conversations(
    context: ToolContext,
    query: Annotated[str, Field(description="Words of a title.", min_length=1, max_length=200)],
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> list[dict[str, Any]]:
    """Find earlier conversations of the person you talk with, newest first, by their titles."""
    found = list_sessions(
        user_id=context.user.pk, query=query, cursor=None, limit=limit, archived=False
    )
    return [
        {"title": one["title"], "updatedAt": one["updatedAt"], "id": one["id"]}
        for one in found["sessions"]
        if one["id"] != str(context.session_id)
    ]
