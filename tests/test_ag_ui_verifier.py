"""The verifier can fail: each broken event or order is refused, the whole one is not."""

from typing import Any

import pytest

from tests.ag_ui_verifier import NotAGUI, check_event, verify, verify_frames

START = {"type": "RUN_STARTED", "threadId": "s", "runId": "t.1"}
FINISH = {"type": "RUN_FINISHED", "threadId": "s", "runId": "t.1", "outcome": {"type": "success"}}
ERROR = {"type": "RUN_ERROR", "message": "It broke.", "code": "interrupted"}
OPEN = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
CONTENT = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi"}
CLOSE = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
THINK = {"type": "REASONING_START", "messageId": "r"}
THOUGHT = {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"}
THOUGHT_END = {"type": "REASONING_MESSAGE_END", "messageId": "r"}
THINK_END = {"type": "REASONING_END", "messageId": "r"}
CALL = {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"}
ARGS = {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"}
CALL_END = {"type": "TOOL_CALL_END", "toolCallId": "c"}
RESULT = {"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": "no"}
CUSTOM = {"type": "CUSTOM", "name": "hermes.queue", "value": {"queue": []}}

WHOLE = [
    START, CUSTOM, THINK, THOUGHT, THOUGHT_END, THINK_END, OPEN, CONTENT, CLOSE,
    CALL, ARGS, CALL_END, RESULT, FINISH,
]  # fmt: skip


def of_turn(*events: dict[str, Any]) -> list[tuple[str | None, dict[str, Any]]]:
    return [("t", event) for event in events]


def test_it_takes_a_whole_run() -> None:
    assert verify(of_turn(*WHOLE)) == ["t.1"]
    assert verify([*of_turn(START), (None, CUSTOM), *of_turn(ERROR)]) == ["t.1"]
    assert verify(of_turn(START, OPEN), over=False) == []


def test_it_reads_frames() -> None:
    frames = [{"type": "snapshot"}, {"turnId": "t", "event": START}, {"event": CUSTOM}]
    assert verify_frames([*frames, {"turnId": "t", "event": FINISH}]) == ["t.1"]


@pytest.mark.parametrize(
    "events",
    [
        (OPEN,),
        (START,),
        (START, OPEN, CONTENT, FINISH),
        (START, CONTENT, FINISH),
        (START, OPEN, OPEN, CLOSE, FINISH),
        (START, OPEN, {**CONTENT, "messageId": "other"}, CLOSE, FINISH),
        (START, OPEN, {**CONTENT, "delta": ""}, CLOSE, FINISH),
        (START, CLOSE, FINISH),
        (START, FINISH, ERROR),
        (START, FINISH, CUSTOM),
        (START, FINISH, START, FINISH),
        (START, START, FINISH),
        (START, {**FINISH, "runId": "t.2"}),
        ({**START, "runId": "other.1"}, ERROR),
        (START, THOUGHT, THOUGHT_END, FINISH),
        (START, THINK, THOUGHT, THINK_END, THOUGHT_END, FINISH),
        (START, CALL, ARGS, FINISH),
        (START, CALL, RESULT, CALL_END, FINISH),
        (START, RESULT, FINISH),
        (START, CALL, CALL_END, CALL, CALL_END, FINISH),
        (START, {"type": "RAW", "event": {}}, FINISH),
    ],
)
def test_it_refuses_a_broken_order(events: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(NotAGUI):
        verify(of_turn(*events))


def test_it_refuses_a_run_that_stands_in_another() -> None:
    with pytest.raises(NotAGUI, match="outside a run"):
        verify([*of_turn(START), ("u", OPEN)])
    with pytest.raises(NotAGUI, match="no turn"):
        verify([*of_turn(START), (None, OPEN)])


@pytest.mark.parametrize(
    "event",
    [
        {**START, "hermes": 1},
        {"type": "NO_SUCH_EVENT"},
        {"type": "RUN_STARTED", "runId": "t.1"},
        {"type": "RUN_STARTED", "thread_id": "s", "runId": "t.1"},
        {**FINISH, "outcome": {"type": "success", "why": "nothing"}},
        {**FINISH, "outcome": {"type": "done"}},
        {**FINISH, "usage": [{"inputTokens": 3, "tokens": 3}]},
        {**FINISH, "usage": [{"inputTokens": "3"}]},
        {**OPEN, "role": None},
    ],
)
def test_it_refuses_what_is_no_event_of_the_protocol(event: dict[str, Any]) -> None:
    with pytest.raises(NotAGUI):
        check_event(event)
