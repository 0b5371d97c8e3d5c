"""How a run ends: which rows close it, and which terminal event. No turn ends without one."""

from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Final

from gateway_app import events
from gateway_app.agent import Draft
from gateway_app.services.dead_runs import STOPPED, notice
from gateway_app.services.runs import RunWrite, TurnRecord
from gateway_app.services.starting import RunLease
from gateway_app.shapes import spent_shape, usage_shape, without_none
from gateway_app.tools.registry import read_names
from gateway_app.turns.live_run import LiveRun
from gateway_app.turns.tool_step import open_results, step_rows
from sessions_app.fields import dump_json
from sessions_app.sentences import NOTHING, Sentence, say
from sessions_app.transcript import NewMessage


@dataclass(frozen=True, slots=True)
class Ending:
    """state: completed, stopped or failed. A failure has a code and a sentence."""

    state: str
    code: str = ""
    sentence: Sentence = NOTHING


NOT_STORED: Final = say("This answer could not be stored. Your message is kept; try again.")
AWAY: Final = say("The database did not answer. Your message is kept; try again.")


def unstored_write(live: LiveRun, refused: RunWrite) -> RunWrite:
    """The last transaction of a run whose own last one the database refused: only a notice."""
    ending = Ending("failed", "storage", NOT_STORED)
    live.draft, live.record = None, TurnRecord()
    bare = ending_write(live, ending, refused.lease_owner)
    return replace(bare, before=refused.before)


def ending_write(live: LiveRun, ending: Ending, lease_owner: str | None) -> RunWrite:
    """The last transaction of a run. `lease_owner` set: the next waiting turn starts with it."""
    record = live.record
    record.duration_ms = round((monotonic() - live.started) * 1000)
    record.finish = _finish(live.draft, ending)
    record.error_code, record.error_message = ending.code, str(ending.sentence)[:500]
    messages = closing_rows(live.draft, ending, record.finish)
    if live.run.first_turn:
        messages.append(_session_meta(live))
    return RunWrite(
        run=live.run,
        messages=messages,
        before=[*live.close_items(), *open_results(live.draft)],
        terminal=_terminal(live.run, record, ending),
        record=record,
        state=ending.state,
        lease_owner=lease_owner,
    )


def closing_rows(draft: Draft | None, ending: Ending, finish: str) -> list[NewMessage]:
    """The answer as far as it came, and for what is not an answer a notice that closes it."""
    rows: list[NewMessage] = []
    if draft is not None and (
        draft.text or draft.reasoning or draft.results or ending.state == "completed"
    ):
        if not draft.results and ending.state != "completed":
            draft.calls, draft.sent = [], None  # an answer that was cut has no valid signatures
        rows += step_rows(draft, finish)
    if ending.state == "failed":
        rows.append(notice(ending.sentence, ending.code))
    elif ending.state == "stopped" and not (draft is not None and draft.text):
        rows.append(notice(STOPPED, "stopped"))
    return rows


def _finish(draft: Draft | None, ending: Ending) -> str:
    if ending.state == "completed":
        return (draft.finish if draft else None) or "stop"
    return "error" if ending.state == "failed" else ending.state


def _session_meta(live: LiveRun) -> NewMessage:
    """The marker of a session's first turn: what it began with."""
    part = {
        "type": "session_meta",
        "tools": [] if live.run.frozen is None else read_names(live.run.frozen.prompt.tools),
        "model": live.record.model or "",
        "platform": live.run.platform,
    }
    return NewMessage(kind="session_meta", parts=dump_json([part]))


def usage_of(record: TurnRecord) -> dict[str, Any] | None:
    """The run's tokens as AG-UI's TokenUsage; None where the provider told nothing."""
    if record.input_tokens is None and record.output_tokens is None:
        return None
    provider, _, model = (record.model or "").partition(":")
    named = without_none({"provider": provider or None, "model": model or None})
    return named | usage_shape(record)


def _terminal(run: RunLease, record: TurnRecord, ending: Ending) -> bytes:
    facts = spent_shape(record)
    if record.verdict:
        facts["cache"] = {
            "verdict": record.worst_verdict or record.verdict,
            "reason": record.worst_reason or record.reason or "",
            "baseline": record.baseline,
            "revision": record.revision,
        }
    if record.fallback_from:
        facts["fallbackFrom"] = record.fallback_from
    if ending.state == "failed":
        return events.run_error(ending.code, ending.sentence, facts)
    return events.run_finished(
        run.session_id,
        run.turn_id,
        run.generation,
        cancelled=ending.state == "stopped",
        usage=usage_of(record),
        facts=facts,
    )
