"""The events of a Messages answer, without a network."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_app.providers.anthropic_stream import MAX_BLOCKS, AnthropicAnswerParser
from gateway_app.providers.base import (
    Delta,
    Finish,
    ReasoningDelta,
    Replay,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from gateway_app.providers.failures import ErrorInAnswer, UnreadableAnswer


def event(kind: str, **fields: object) -> bytes:
    body = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {body}\n\n".encode()


def start(index: int, **block: object) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **fields: object) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def stop(reason: str | None, **usage: object) -> bytes:
    return event("message_delta", delta={"stop_reason": reason}, usage=usage)


def read(*pieces: bytes) -> list[Delta]:
    parser = AnthropicAnswerParser()
    deltas = [delta for piece in pieces for delta in parser.feed(piece)]
    return deltas + parser.end()


ANSWER = b"".join(
    [
        event("message_start", message={"usage": {"input_tokens": 5, "output_tokens": 1}}),
        event("ping"),
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Grüße, "),
        delta(0, "thinking_delta", thinking="世界"),
        delta(0, "signature_delta", signature="abc"),
        delta(0, "signature_delta", signature="+/=="),
        event("content_block_stop", index=0),
        start(1, type="redacted_thinking", data="c2VjcmV0"),
        event("content_block_stop", index=1),
        start(2, type="text", text=""),
        delta(2, "text_delta", text="Let me "),
        delta(2, "text_delta", text="look 👩‍🚀."),
        event("content_block_stop", index=2),
        start(3, type="tool_use", id="toolu_1", name="look", input={}),
        delta(3, "input_json_delta", partial_json=""),
        delta(3, "input_json_delta", partial_json='{"at": '),
        delta(3, "input_json_delta", partial_json='"é"}'),
        event("content_block_stop", index=3),
        event("something_new", content="of a later version"),
        stop("tool_use", output_tokens=7, cache_read_input_tokens=100,
             cache_creation_input_tokens=10),
        event("message_stop"),
    ]
)  # fmt: skip
WANTED = read(ANSWER)


def test_it_reads_a_whole_answer() -> None:
    assert [
        ReasoningDelta(""),
        ReasoningDelta("Grüße, "),
        ReasoningDelta("世界"),
        ReasoningDelta(""),
        TextDelta("Let me "),
        TextDelta("look 👩‍🚀."),
        ToolCallDelta(3, "toolu_1", "look", ""),
        ToolCallDelta(3, None, None, '{"at": '),
        ToolCallDelta(3, None, None, '"é"}'),
        Replay(
            (
                {"type": "reasoning", "text": "Grüße, 世界", "signature": "abc+/=="},
                {"type": "redacted_reasoning", "data": "c2VjcmV0"},
                {"type": "text", "text": "Let me look 👩‍🚀."},
                {"type": "tool_call", "index": 3},
            )
        ),
        Finish("tool_calls"),
        Usage(115, 100, 7, 10),
    ] == WANTED


@given(cuts=st.lists(st.integers(0, len(ANSWER)), max_size=30))
@settings(max_examples=200)
def test_it_reads_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(ANSWER)})
    assert read(*(ANSWER[start:end] for start, end in pairwise(edges))) == WANTED


def test_it_reads_the_same_byte_by_byte() -> None:
    assert read(*(ANSWER[at : at + 1] for at in range(len(ANSWER)))) == WANTED


@given(noise=st.binary(max_size=200), cut=st.integers(0, len(ANSWER)))
@settings(max_examples=300)
def test_it_survives_any_bytes(noise: bytes, cut: int) -> None:
    try:
        read(ANSWER[:cut] + noise + ANSWER[cut:])
    except (UnreadableAnswer, ErrorInAnswer):
        return


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "pause"),
        ("refusal", "content_filter"),
        ("a_later_one", "stop"),
    ],
)
def test_it_knows_every_reason(reason: str, wanted: str) -> None:
    assert Finish(wanted) in read(stop(reason), event("message_stop"))


def test_it_wants_nothing_back_that_is_not_signed() -> None:
    answer = [
        start(0, type="thinking", thinking=""),
        delta(0, "thinking_delta", thinking="Hm"),
        start(1, type="text", text="Yes"),
        stop("end_turn"),
        event("message_stop"),
    ]
    told = read(*answer)
    assert told == [ReasoningDelta(""), ReasoningDelta("Hm"), TextDelta("Yes"), Finish("stop")]


def test_it_keeps_the_proof_of_reasoning_that_is_not_shown() -> None:
    answer = [
        start(0, type="thinking", thinking=""),
        delta(0, "signature_delta", signature="s"),
        start(1, type="text", text="Yes"),
        stop("end_turn"),
    ]
    assert Replay(
        (
            {"type": "reasoning", "text": "", "signature": "s"},
            {"type": "text", "text": "Yes"},
        )
    ) in read(*answer)


def test_it_ignores_calls_that_the_server_makes_itself() -> None:
    answer = [
        start(0, type="server_tool_use", id="srv", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"q": 1}'),
        start(1, type="text", text="Found"),
        stop("end_turn"),
    ]
    assert read(*answer) == [TextDelta("Found"), Finish("stop")]


@pytest.mark.parametrize(
    "error",
    [
        event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
        b'data: {"error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n',
    ],
)
def test_it_raises_an_error_within_the_stream(error: bytes) -> None:
    with pytest.raises(ErrorInAnswer) as caught:
        read(start(0, type="text", text="So"), error)
    assert caught.value.error == {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize(
    "garbled",
    [
        b"data: {\n\n",
        b"data: []\n\n",
        b'data: {"type": 5}\n\n',
        delta(0, "text_delta", text=5),
        delta(3, "text_delta", text="of a block that did not begin"),
        start(0, type="text", text=["list"]),
        event("message_start", message="text"),
    ],
)
def test_it_refuses_what_is_no_event(garbled: bytes) -> None:
    with pytest.raises(UnreadableAnswer):
        read(garbled)


def test_it_refuses_an_answer_of_endless_blocks() -> None:
    with pytest.raises(UnreadableAnswer):
        read(*(start(index, type="text", text="x") for index in range(MAX_BLOCKS + 1)))


@pytest.mark.parametrize("count", [None, -1, "5", 1e9, True, 10**12])
def test_it_does_not_lose_an_answer_to_counts_that_are_none(count: object) -> None:
    answer = [start(0, type="text", text="Yes"), stop("end_turn", input_tokens=count)]
    assert read(*answer)[:2] == [TextDelta("Yes"), Finish("stop")]


def test_it_reads_an_answer_that_was_not_streamed() -> None:
    message = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "s"},
            {"type": "text", "text": "Yes"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    assert AnthropicAnswerParser().whole(json.dumps(message).encode()) == [
        ReasoningDelta(""),
        ReasoningDelta("Hm"),
        TextDelta("Yes"),
        ToolCallDelta(2, "t", "f", ""),
        ToolCallDelta(2, None, None, '{"a":1}'),
        Replay(
            (
                {"type": "reasoning", "text": "Hm", "signature": "s"},
                {"type": "text", "text": "Yes"},
                {"type": "tool_call", "index": 2},
            )
        ),
        Finish("tool_calls"),
        Usage(3, None, 2, None),
    ]
