"""The line split and the chunks, without a network."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_app.providers.base import Delta, Finish, TextDelta, ToolCallDelta, Usage
from gateway_app.providers.event_stream import MAX_LINE_BYTES
from gateway_app.providers.failures import ErrorInAnswer, UnreadableAnswer
from gateway_app.providers.openai_stream import OpenAIAnswerParser


def event(**chunk: object) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


def delta_event(**delta: object) -> bytes:
    return event(choices=[{"index": 0, "delta": delta, "finish_reason": None}])


def read(*pieces: bytes) -> list[Delta]:
    parser = OpenAIAnswerParser("server")
    deltas = [delta for piece in pieces for delta in parser.feed(piece)]
    return deltas + parser.end()


ANSWER = b"".join(
    [
        b": a comment\n\n",
        delta_event(role="assistant", content=""),
        delta_event(reasoning="Hm"),
        delta_event(content="Grüße, 世界 "),
        delta_event(content="👩‍🚀\n\r\n"),
        b'event: message\ndata: {"choices":\ndata: [{"delta": {"content": "two lines"}}]}\n\n',
        delta_event(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f"}}]),
        delta_event(tool_calls=[{"index": 0, "function": {"arguments": '{"é": 1}'}}]),
        event(choices=[{"delta": {}, "finish_reason": "tool_calls"}], usage=None),
        event(choices=[], usage={"prompt_tokens": 5, "completion_tokens": 7}),
        b"data: [DONE]\n\n",
    ]
)
WANTED = read(ANSWER)


def test_it_reads_a_whole_answer() -> None:
    texts = [delta.text for delta in WANTED if isinstance(delta, TextDelta)]
    assert texts == ["Grüße, 世界 ", "👩‍🚀\n\r\n", "two lines"]
    assert WANTED[-2:] == [Finish("tool_calls"), Usage(5, None, 7)]


@given(st.lists(st.integers(0, len(ANSWER)), max_size=60), st.booleans())
@settings(max_examples=300)
def test_it_reads_the_same_however_the_bytes_are_cut(cuts: list[int], crlf: bool) -> None:
    answer = ANSWER.replace(b"\n", b"\r\n") if crlf else ANSWER
    edges = [0, *sorted(cuts), len(answer)]
    pieces = [answer[start:stop] for start, stop in pairwise(edges)]
    assert read(*pieces) == WANTED


def test_it_reads_the_same_byte_by_byte() -> None:
    assert read(*(ANSWER[index : index + 1] for index in range(len(ANSWER)))) == WANTED


@given(st.binary(max_size=400), st.integers(0, 400))
def test_it_survives_any_bytes(noise: bytes, cut: int) -> None:
    try:
        deltas = read(noise[:cut], noise[cut:])
    except (UnreadableAnswer, ErrorInAnswer):
        return
    assert isinstance(deltas, list)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=20))
def test_it_gives_every_text_as_it_was_sent(texts: list[str]) -> None:
    sent = "".join(
        f"data: {json.dumps({'choices': [{'delta': {'content': t}}]})}\n\n" for t in texts
    )
    got = read(sent.encode())
    assert [delta.text for delta in got if isinstance(delta, TextDelta)] == texts


def test_it_joins_a_character_that_came_in_halves() -> None:
    halves = (
        rb'data: {"choices":[{"delta":{"content":"a\ud83d"}}]}' + b"\n\n",
        rb'data: {"choices":[{"delta":{"content":"\ude00b"}}]}' + b"\n\n",
    )
    assert read(*halves) == [TextDelta("a"), TextDelta("😀b")]


@pytest.mark.parametrize("text", [rb"\ud83d", rb"\ude00", b"\xff"])
def test_it_replaces_half_a_character(text: bytes) -> None:
    got = read(b'data: {"choices":[{"delta":{"content":"a' + text + b'"}}]}\n\n')
    assert "".join(delta.text for delta in got if isinstance(delta, TextDelta)) == "a\ufffd"


def test_it_ignores_what_it_does_not_know() -> None:
    got = read(
        b"id: 7\nretry: 100\nevent: ping\ndata:\n\n",
        event(choices=[{"delta": {"content": "a", "audio": {"x": [1]}}, "logprobs": {}}], x=1),
        event(choices=[{}]),
        event(choices=[{"delta": None}]),
        event(choices=None),
        event(),
    )
    assert got == [TextDelta("a")]


def test_it_reads_content_that_is_a_list() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "thing"}, {"type": "text", "text": "b"}]
    assert read(delta_event(content=content)) == [TextDelta("ab")]


def test_it_reads_a_refusal_as_text() -> None:
    assert read(delta_event(refusal="I will not.")) == [TextDelta("I will not.")]


def test_it_reads_nothing_after_done() -> None:
    assert read(b"data: [DONE]\n\n", delta_event(content="late")) == []


def test_it_reads_a_last_event_without_its_blank_line() -> None:
    parser = OpenAIAnswerParser("server")
    assert parser.feed(event(choices=[{"finish_reason": "length"}]).rstrip()) == []
    assert parser.end() == [Finish("length")]
    assert parser.finished


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("eos", "stop"),
    ],
)
def test_it_knows_four_reasons(reason: str, wanted: str) -> None:
    assert read(event(choices=[{"finish_reason": reason}])) == [Finish(wanted)]


def test_it_tells_the_last_usage_once() -> None:
    counts = [
        {"prompt_tokens": 9, "completion_tokens": written, "prompt_cache_hit_tokens": 4}
        for written in (1, 2)
    ]
    got = read(*(event(choices=[], usage=count) for count in counts), b"data: [DONE]\n\n")
    assert got == [Usage(9, 4, 2)]


@pytest.mark.parametrize(
    "count", ["12", 1.5, True, -1, 2**31, 2**63, 2**70, [], {}], ids=lambda count: repr(count)
)
def test_it_does_not_lose_an_answer_to_counts_that_are_none(count: object) -> None:
    usage = {
        "prompt_tokens": count,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": count},
        "prompt_cache_hit_tokens": count,
    }
    assert read(delta_event(content="a"), event(choices=[], usage=usage)) == [
        TextDelta("a"),
        Usage(None, None, 3),
    ]


@pytest.mark.parametrize("usage", ["many", 5, [1], {"prompt_tokens_details": "none"}])
def test_it_does_not_lose_an_answer_to_a_usage_that_is_none(usage: object) -> None:
    assert read(delta_event(content="a"), event(choices=[], usage=usage))[0] == TextDelta("a")


def test_it_replaces_surrogates_that_stand_alone_in_calls() -> None:
    call = rb'{"id": "a\ud800", "function": {"name": "f\udc00", "arguments": "\ud800"}}'
    got = read(b'data: {"choices": [{"delta": {"tool_calls": [' + call + b"]}}]}\n\n")
    assert got == [ToolCallDelta(0, "a\ufffd", "f\ufffd", "\ufffd")]


def test_it_numbers_calls_that_carry_no_number() -> None:
    got = read(
        delta_event(tool_calls=[{"id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        delta_event(tool_calls=[{"id": "b", "function": {"name": "g", "arguments": "{"}}]),
        delta_event(tool_calls=[{"function": {"arguments": "}"}}]),
    )
    assert got == [
        ToolCallDelta(0, "a", "f", "{}"),
        ToolCallDelta(1, "b", "g", "{"),
        ToolCallDelta(1, None, None, "}"),
    ]


def test_it_parts_calls_that_carry_neither_number_nor_id() -> None:
    first, second = ({"id": "", "function": {"name": one, "arguments": "{"}} for one in "fg")
    got = read(
        delta_event(tool_calls=[first]),
        delta_event(tool_calls=[{"function": {"arguments": "}"}}]),
        delta_event(tool_calls=[second]),
        delta_event(tool_calls=[{"function": {"arguments": "}"}}]),
    )
    assert got == [
        ToolCallDelta(0, None, "f", "{"),
        ToolCallDelta(0, None, None, "}"),
        ToolCallDelta(1, None, "g", "{"),
        ToolCallDelta(1, None, None, "}"),
    ]


@pytest.mark.parametrize("call_id", [None, "", "again"])
def test_it_numbers_the_calls_of_an_answer_that_was_not_streamed(call_id: str | None) -> None:
    calls = [{"id": call_id, "function": {"name": one, "arguments": "{}"}} for one in "fg"]
    answer = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    got = OpenAIAnswerParser("server").whole(json.dumps(answer).encode())
    made = call_id or None
    assert got == [
        ToolCallDelta(0, made, "f", "{}"), ToolCallDelta(1, made, "g", "{}"), Finish("tool_calls"),
    ]  # fmt: skip


def test_it_refuses_an_event_without_end() -> None:
    parser = OpenAIAnswerParser("server")
    piece = b"data: " + b" " * 1_000_000 + b"\n"
    with pytest.raises(UnreadableAnswer):
        for _ in range(MAX_LINE_BYTES // len(piece) + 1):
            parser.feed(piece)


def test_it_refuses_a_line_without_end() -> None:
    parser = OpenAIAnswerParser("server")
    piece = b"data: " + b" " * 1_000_000
    with pytest.raises(UnreadableAnswer):
        for _ in range(MAX_LINE_BYTES // len(piece) + 1):
            parser.feed(piece)
