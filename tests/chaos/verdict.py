"""What must hold after it all, read from the database past everything that was broken."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from gateway_app.models import Turn
from gateway_app.providers.openai_chat import OpenAIChatWire
from sessions_app.models import MODEL_KINDS, PERSON_KINDS, Message
from sessions_app.signals import TranscriptRow
from tests.ag_ui_verifier import verify_frames
from tests.chaos.person import Person
from tests.coherence.oracle import expected_pieces
from tests.model_scripts import RecordedRequest
from tests.session_log import stored_frames
from tests.toolbox.diary import read_diary

ENDED: Final = {"completed", "failed", "stopped", "interrupted", "absorbed"}
Json = dict[str, Any]


class Broken(AssertionError):
    """A promise that was not kept."""


def _require(held: bool, promise: str, what: object) -> None:
    if not held:
        raise Broken(f"{promise}: {what}")


def judge(
    people: Sequence[Person], requests: Sequence[RecordedRequest], diary: Path
) -> Counter[str]:
    """Every promise to every person was kept; how their turns ended. Raises Broken."""
    asked = _by_conversation(requests)
    made = Counter((turn, call) for turn, call, _ in read_diary(diary))
    _require(max(made.values(), default=0) <= 1, "no tool is run twice", made.most_common(3))
    states: Counter[str] = Counter()
    for person in people:
        if person.session_id is None:
            continue
        states += _judge_turns(person)
        states += _judge_calls(person.session_id, made)
        _judge_log(person.session_id)
        _judge_view(person)
        _judge_prompts(person.session_id, asked.get(f"c{person.number}", []))
    return states


def _judge_turns(person: Person) -> Counter[str]:
    """No acknowledged message was lost or run twice, and every turn has ended."""
    turns = {str(turn.pk): turn for turn in Turn.objects.filter(session_id=person.session_id)}
    for cid, turn_id in person.acknowledged.items():
        turn = turns.get(turn_id)
        _require(turn is not None, "acknowledged is stored", cid)
        assert turn is not None
        _require(turn.client_message_id == cid, "acknowledged is stored", (cid, turn_id))
        rows = Message.objects.filter(session_id=person.session_id, client_message_id=cid)
        due = 0 if turn.block is None else 1
        _require(rows.count() == due, "a message is one row", (cid, turn.state, rows.count()))
        answers = Message.objects.filter(
            session_id=person.session_id, turn_id=turn.pk, kind="assistant", state="active",
            finish="stop",
        ).count()  # fmt: skip
        due = 1 if turn.state == "completed" else 0
        _require(answers == due, "a turn is answered once", (cid, turn.state, answers))
    for turn in turns.values():
        _require(turn.state in ENDED, "every turn ends", (turn.pk, turn.state))
    return Counter(turn.state for turn in turns.values())


def _judge_calls(session_id: str, made: Mapping[tuple[str, str], int]) -> Counter[str]:
    """Every call has one result, which says whether it was run."""
    rows = Message.objects.filter(session_id=session_id, kind__in=("assistant", "tool"))
    parts = [(str(row.turn_id), part) for row in rows.order_by("position") for part in row.parts]
    calls = Counter((turn, part["id"]) for turn, part in parts if part["type"] == "tool_call")
    told = [(turn, part) for turn, part in parts if part["type"] == "tool_result"]
    results = Counter((turn, part["callId"]) for turn, part in told)
    _require(calls == results, "a call has a result", (calls, results))
    for turn, part in told:
        runs, error = made.get((turn, part["callId"]), 0), part.get("error", False)
        _require(runs == 1 or bool(error), "a result is one of a call", (turn, part))
    return Counter(f"call {part.get('error', 'done')}" for _, part in told)


def _judge_log(session_id: str) -> None:
    """Runs follow one another, each of them whole: the log's order says so."""
    frames = stored_frames(session_id)
    seqs = [frame["seq"] for frame in frames]
    _require(seqs == sorted(set(seqs)), "seqs only rise", session_id)
    verify_frames(frames)


def _judge_view(person: Person) -> None:
    """What the person was shown, frame by frame, is what is stored."""
    rows = Message.objects.filter(session_id=person.session_id, kind__in=PERSON_KINDS)
    stored = {
        str(row.pk): {"id": str(row.pk), "position": row.position, "kind": row.kind,
                      "state": row.state, "parts": row.parts}
        for row in rows.exclude(state="hidden")
    }  # fmt: skip
    shown = person.viewer.messages
    _require(not person.viewer.writing, "nothing is half written", person.viewer.writing)
    for row_id, row in shown.items():
        _require(stored.get(row_id) == row, "shown is stored", (row, stored.get(row_id)))
    first = min((row["position"] for row in shown.values()), default=0)
    unseen = [row for key, row in stored.items() if row["position"] >= first and key not in shown]
    _require(not unseen, "stored is shown", unseen)


def _judge_prompts(session_id: str, requests: Iterable[RecordedRequest]) -> None:
    """Each prompt is the transcript up to then; nothing is ever taken back here."""
    rows = Message.objects.filter(session_id=UUID(session_id), state="active", kind__in=MODEL_KINDS)
    visible = [
        TranscriptRow(row.pk, row.position, row.kind, row.state, json.dumps(row.parts), None)
        for row in rows.order_by("position")
    ]
    pieces = [json.loads(piece) for piece in expected_pieces(visible, OpenAIChatWire(), None)]
    head = None
    for request in requests:
        head = head or request.messages[0]
        _require(request.messages[0] == head, "the prompt is frozen", request.messages[0])
        sent = request.messages[1:]
        _require(sent == pieces[: len(sent)], "a prompt is the transcript", (sent, pieces))


def _by_conversation(requests: Iterable[RecordedRequest]) -> dict[str, list[RecordedRequest]]:
    """Requests by the name with which a conversation's messages begin."""
    found: dict[str, list[RecordedRequest]] = {}
    for request in requests:
        first = next(one["content"] for one in request.messages if one["role"] == "user")
        found.setdefault(first.split()[0], []).append(request)
    return found
