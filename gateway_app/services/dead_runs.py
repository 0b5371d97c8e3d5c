"""What a dead run had shown, read from its log, and what closes it: rows and events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from gateway_app import events
from gateway_app.event_store import read_run_events
from gateway_app.models import Turn
from sessions_app.fields import dump_json
from sessions_app.transcript import NewMessage

LOST: Final = "The server stopped while this answer was being written. Send again to go on."


@dataclass(slots=True)
class DeadRun:
    """What a run had shown when it died: the open items and the text, read from its log."""

    message_id: UUID | None = None
    text: str = ""
    reasoning: str = ""
    closing: tuple[bytes, ...] = ()
    terminal: bool = False


def read_dead(session_id: UUID, turn_id: UUID, generation: int) -> DeadRun:
    """One run, as its log tells of it."""
    logged = read_run_events(session_id, turn_id, generation)
    return read_dead_run([one.event for one in logged])


def read_dead_run(logged: Sequence[bytes]) -> DeadRun:
    """The last message's text and what must be closed, from one run's events."""
    dead = DeadRun()
    open_items: dict[tuple[str, str], list[bytes]] = {}
    for one in logged:
        event = msgspec.json.decode(one)
        kind = event["type"]
        if kind == "TEXT_MESSAGE_START":
            if dead.message_id != UUID(event["messageId"]):  # the one before was blank
                dead.text = dead.reasoning = ""
            dead.message_id = UUID(event["messageId"])
            open_items["text", event["messageId"]] = [events.text_end(dead.message_id)]
        elif kind == "TEXT_MESSAGE_CONTENT":
            dead.text += event["delta"]
        elif kind == "TEXT_MESSAGE_END":
            open_items.pop(("text", event["messageId"]), None)
        elif kind == "REASONING_START":
            span, dead.reasoning = UUID(event["messageId"]), ""
            dead.message_id = events.reasoning_id(span)
            open_items["reasoning", event["messageId"]] = events.reasoning_end(span)
        elif kind == "REASONING_MESSAGE_CONTENT":
            dead.reasoning += event["delta"]
        elif kind == "REASONING_END":
            open_items.pop(("reasoning", event["messageId"]), None)
        elif kind == "CUSTOM" and event["name"] == "hermes.committed":
            dead.message_id, dead.text, dead.reasoning = None, "", ""
        elif kind in {"RUN_FINISHED", "RUN_ERROR"}:
            dead.terminal = True
    dead.closing = tuple(event for closing in open_items.values() for event in closing)
    return dead


def closing_rows(turn: Turn, dead: DeadRun, *, stopped: bool, again: bool) -> list[NewMessage]:
    """The text a person may have seen; and a notice, if the turn is over without an answer."""
    rows: list[NewMessage] = []
    finish = "stopped" if stopped else "interrupted"
    if dead.message_id is not None and (dead.text or dead.reasoning):
        parts = [{"type": "reasoning", "text": dead.reasoning}] if dead.reasoning else []
        if dead.text:
            parts.append({"type": "text", "text": dead.text})
        rows.append(
            NewMessage(
                kind="assistant",
                id=dead.message_id,
                parts=dump_json(parts),
                state="superseded" if again else "active",
                finish=finish,
            )
        )
    if not again and not (stopped and rows):
        text = "Stopped before an answer." if stopped else LOST
        rows.append(
            NewMessage(
                kind="notice", parts=dump_json([{"type": "text", "text": text}]), finish=finish
            )
        )
    return rows


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
    message = "The server stopped. The answer is being written again." if again else LOST
    return [events.run_error("interrupted", message, {"retrying": again})]
