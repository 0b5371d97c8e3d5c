"""What a dead run had shown, read from its log, and what closes it: rows and events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

import msgspec

from gateway_app import events
from gateway_app.agent import ToolCall, ToolResult
from gateway_app.event_store import read_run_events
from gateway_app.models import Turn
from gateway_app.services.runs import kept_sent
from gateway_app.services.tool_rows import result_event, result_row
from sessions_app.fields import dump_json
from sessions_app.models import new_id
from sessions_app.sentences import Sentence, notice_part, say
from sessions_app.transcript import NewMessage

UNKNOWN: Final = (
    "The outcome is unknown: the server stopped while this tool ran."
    " It may have run. It was not run again."
)
LOST: Final = say("The server stopped while this answer was being written. Send again to go on.")
AGAIN: Final = say("The server stopped. The answer is being written again.")
STOPPED: Final = say("Stopped before an answer.")

_OpenItems = dict[tuple[str, str], list[bytes]]
"""Kind and id of what has a beginning and no end yet -> the events that end it."""


@dataclass(slots=True)
class DeadRun:
    """What a run had shown when it died: open items, text and calls, read from its log."""

    message_id: UUID | None = None
    text: str = ""
    reasoning: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    """Calls that the log tells of: they may have been made."""
    results: dict[str, ToolResult] = field(default_factory=dict)
    """What came of each call, as far as the log knows."""
    closing: tuple[bytes, ...] = ()
    terminal: bool = False

    def close_calls(self) -> None:
        """Every call has a result, in the order of the calls."""
        self.results = {
            call_id: self.results.get(call_id)
            or ToolResult(new_id(), call_id, UNKNOWN, error="unknown")
            for call_id in self.calls
        }


def read_dead(session_id: UUID, turn_id: UUID, generation: int) -> DeadRun:
    """One run, as its log tells of it."""
    logged = read_run_events(session_id, turn_id, generation)
    return read_dead_run([one.event for one in logged])


def read_dead_run(logged: Sequence[bytes]) -> DeadRun:
    """The last message's text and what must be closed, from one run's events."""
    dead, open_items = DeadRun(), _OpenItems()
    for one in logged:
        event = msgspec.json.decode(one)
        _take(dead, event)
        _follow(open_items, event)
    told = set(dead.results)
    dead.close_calls()
    dead.closing = (
        *(event for closing in open_items.values() for event in closing),
        *(result_event(one) for call_id, one in dead.results.items() if call_id not in told),
    )
    return dead


def _take(dead: DeadRun, event: Mapping[str, Any]) -> None:
    """The run had shown this event, too."""
    match event:
        case {"type": "TEXT_MESSAGE_START", "messageId": message_id}:
            _go_on(dead, UUID(message_id))
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": text}:
            dead.text += text
        case {"type": "REASONING_START", "messageId": span}:
            dead.message_id, dead.reasoning = events.reasoning_id(UUID(span)), ""
        case {"type": "REASONING_MESSAGE_CONTENT", "delta": text}:
            dead.reasoning += text
        case {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name}:
            _go_on(dead, UUID(event["parentMessageId"]))
            dead.calls[call_id] = ToolCall(call_id, name, "")
        case {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": text}:
            call = dead.calls[call_id]
            dead.calls[call_id] = replace(call, arguments=call.arguments + text)
        case {"type": "TOOL_CALL_RESULT", "toolCallId": call_id}:
            dead.results[call_id] = _result(event)
        case {"type": "CUSTOM", "name": "hermes.committed"}:
            dead.message_id, dead.text, dead.reasoning = None, "", ""
            dead.calls, dead.results = {}, {}
        case {"type": "RUN_FINISHED" | "RUN_ERROR"}:
            dead.terminal = True


def _go_on(dead: DeadRun, message_id: UUID) -> None:
    """The run writes this message; what it wrote of another one was blank."""
    if dead.message_id != message_id:
        dead.text = dead.reasoning = ""
    dead.message_id = message_id


def _follow(open_items: _OpenItems, event: Mapping[str, Any]) -> None:
    """The items that are open after this event, each with the events that close it."""
    match event:
        case {"type": "TEXT_MESSAGE_START", "messageId": message_id}:
            open_items["text", message_id] = [events.text_end(UUID(message_id))]
        case {"type": "TEXT_MESSAGE_END", "messageId": message_id}:
            open_items.pop(("text", message_id), None)
        case {"type": "REASONING_START", "messageId": span}:
            open_items["reasoning", span] = events.reasoning_end(UUID(span))
        case {"type": "REASONING_END", "messageId": span}:
            open_items.pop(("reasoning", span), None)


def _result(event: Mapping[str, Any]) -> ToolResult:
    facts = event.get("metadata", {}).get("hermes", {})
    return ToolResult(
        UUID(event["messageId"]),
        event["toolCallId"],
        event["content"],
        error=facts.get("error", False),
        duration_ms=facts.get("durationMs"),
    )


def closing_rows(turn: Turn, dead: DeadRun, *, stopped: bool, again: bool) -> list[NewMessage]:
    """The text a person may have seen; and a notice, if the turn is over without an answer.

    A step whose calls were shown stays, with what is known of them: they are not made again.
    """
    rows: list[NewMessage] = []
    finish = "stopped" if stopped else "interrupted"
    if dead.message_id is not None and (dead.text or dead.reasoning or dead.calls):
        rows.append(
            NewMessage(
                kind="assistant",
                id=dead.message_id,
                parts=dump_json(_parts(dead)),
                sent_parts=kept_sent(turn, dead.message_id) if dead.calls else None,
                state="superseded" if again and not dead.calls else "active",
                finish="tool_calls" if again and dead.calls else finish,
            )
        )
        rows += [result_row(result) for result in dead.results.values()]
    if not again and not (stopped and (dead.text or dead.reasoning)):
        rows.append(notice(STOPPED if stopped else LOST, finish))
    return rows


def notice(sentence: Sentence, finish: str, **where: Any) -> NewMessage:
    """The row that tells how a turn ended without an answer."""
    return NewMessage(
        kind="notice", parts=dump_json([notice_part(sentence)]), finish=finish, **where
    )


def _parts(dead: DeadRun) -> list[dict[str, Any]]:
    parts = [{"type": "reasoning", "text": dead.reasoning}] if dead.reasoning else []
    if dead.text:
        parts.append({"type": "text", "text": dead.text})
    return [*parts, *(call.part() for call in dead.calls.values())]


def closing_events(dead: DeadRun, turn: Turn, *, stopped: bool, again: bool) -> list[bytes]:
    """Nothing stays open, and the run has one terminal event."""
    if dead.terminal:
        return []
    return [*dead.closing, *_terminal(turn, stopped=stopped, again=again)]


def _terminal(turn: Turn, *, stopped: bool, again: bool) -> list[bytes]:
    if stopped:
        return [
            events.run_finished(
                turn.session_id, turn.pk, turn.generation, cancelled=True, usage=None, facts={}
            )
        ]
    return [events.run_error("interrupted", AGAIN if again else LOST, {"retrying": again})]
