"""A tool's result as its row and as its event."""

from gateway_app import events
from gateway_app.agent import ToolResult
from sessions_app.fields import dump_json
from sessions_app.transcript import NewMessage


def result_row(result: ToolResult) -> NewMessage:
    return NewMessage(kind="tool", id=result.message_id, parts=dump_json([result.part()]))


def result_event(result: ToolResult) -> bytes:
    return events.tool_result(result.message_id, result.call_id, result.content, result.facts())
