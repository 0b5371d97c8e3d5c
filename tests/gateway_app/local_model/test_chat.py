"""Requests and answers in OpenAI's format."""

import json

import pytest

from gateway_app.local_model.chat import (
    ANSWER_TOKENS,
    AnswerWriter,
    BadRequest,
    Usage,
    read_request,
)
from gateway_app.local_model.chatml import Message


def request(**fields):
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "Hi"}]}
    return read_request(json.dumps(body | fields).encode())


def test_it_answers_deterministically_unless_told_otherwise():
    assert request().sampling() == {"temperature": 0.0, "seed": 42, "stop": []}
    told = request(temperature=0.7, seed=-1, stop="x", top_p=0.9, frequency_penalty=1)
    assert told.sampling() == {
        "temperature": 0.7,
        "seed": 2**32 - 1,
        "stop": ["x"],
        "top_p": 0.9,
        "frequency_penalty": 1.0,
    }


def test_it_bounds_an_answer():
    assert request().answer_tokens == ANSWER_TOKENS
    assert request(max_tokens=7).answer_tokens == 7
    assert request(max_tokens=7, max_completion_tokens=9).answer_tokens == 9


def test_it_reads_every_kind_of_message():
    messages = [
        {"role": "developer", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "d"},
    ]
    expected = [("system", "a"), ("user", "bc"), ("assistant", ""), ("tool", "d")]
    assert request(messages=messages, tools=[{}]).conversation() == [
        Message(*each) for each in expected
    ]


@pytest.mark.parametrize(
    ("fields", "status", "word"),
    [
        ({"model": "gpt"}, 404, "gpt"),
        ({"messages": None}, 400, "messages"),
        ({"messages": [{"role": "wizard", "content": "a"}]}, 400, "wizard"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "text only"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"temperature": 3}, 400, "temperature"),
    ],
)
def test_it_says_what_is_wrong_with_a_request(fields, status, word):
    with pytest.raises(BadRequest, match=word) as caught:
        request(**fields).conversation()
    assert caught.value.status == status


def test_it_refuses_what_is_no_json():
    with pytest.raises(BadRequest, match="cannot be read"):
        read_request(b"{")


def test_it_reports_cached_tokens():
    usage = Usage(prompt=10, cached=8, completion=3)
    writer = AnswerWriter()
    chunk = json.loads(writer.usage_chunk(usage).removeprefix(b"data: "))
    whole = json.loads(writer.whole("Hi", "stop", usage))
    assert chunk["choices"] == []
    assert chunk["usage"] == whole["usage"]
    assert chunk["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
