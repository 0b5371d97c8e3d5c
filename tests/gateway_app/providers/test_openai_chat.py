"""The wire: what a row and a request look like, to the byte."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_app.providers.base import Prompt, RequestSettings
from gateway_app.providers.call_ids import STRICT
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.providers.rows import (
    OPERATOR_PREFIX,
    call_arguments,
    tool_calls,
    tool_result_of,
)
from sessions_app.signals import TranscriptRow
from tests.gateway_app.providers.conftest import SESSION

Parts = list[dict[str, object]]

WIRE = OpenAIChatWire()
CALLS: Parts = [
    {"type": "reasoning", "text": "I should look."},
    {"type": "tool_call", "id": "c1", "name": "look", "arguments": '{"at": "it"}'},
    {"type": "tool_call", "id": "c2", "name": "ask", "arguments": ""},
]
RESULT: Parts = [{"type": "tool_result", "callId": "c1", "content": "Seen", "error": None}]


def a_row(kind: str, parts: Parts | str, sent_parts: Parts | None = None) -> TranscriptRow:
    return TranscriptRow(
        id=UUID(int=1),
        position=1_000_000,
        kind=kind,
        state="active",
        parts=parts if isinstance(parts, str) else json.dumps(parts),
        sent_parts=None if sent_parts is None else json.dumps(sent_parts),
    )


def text(*texts: str) -> Parts:
    return [{"type": "text", "text": one} for one in texts]


def a_body(*pieces: str, prompt: Prompt | None = None, wire: OpenAIChatWire = WIRE) -> bytes:
    return wire.body(
        model="fake-1",
        prompt=prompt or Prompt("hash", "Be Hermes."),
        pieces=pieces,
        settings=RequestSettings(),
        session_id=SESSION,
    )


@pytest.mark.parametrize(
    ("kind", "parts", "wanted"),
    [
        ("user", text("Hi, ", "Grüße 👋"), {"role": "user", "content": "Hi, Grüße 👋"}),
        ("assistant", text("Yes"), {"role": "assistant", "content": "Yes"}),
        ("assistant", [], {"role": "assistant", "content": ""}),
        (
            "operator",
            text("I am Eve"),
            {"role": "assistant", "content": f"{OPERATOR_PREFIX}I am Eve"},
        ),
        ("notice", text("It failed."), {"role": "assistant", "content": "[Notice: It failed.]"}),
        (
            "summary",
            text("They met."),
            {"role": "user", "content": "[Summary of the conversation until here: They met.]"},
        ),
        ("system", text("Be brief."), {"role": "system", "content": "Be brief."}),
        ("tool", RESULT, {"role": "tool", "tool_call_id": "c1", "content": "Seen"}),
        (
            "assistant",
            CALLS,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"at": "it"}'},
                    },
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {"name": "ask", "arguments": "{}"},
                    },
                ],
            },
        ),
    ],
)
def test_it_encodes_each_kind(kind: str, parts: Parts, wanted: dict[str, object]) -> None:
    piece = WIRE.encode(a_row(kind, parts))
    assert json.loads(piece) == wanted
    assert piece == json.dumps(wanted, ensure_ascii=False, separators=(",", ":"))


def test_it_encodes_what_was_sent_rather_than_what_is_shown() -> None:
    piece = WIRE.encode(a_row("user", text("shown"), text("sent")))
    assert json.loads(piece)["content"] == "sent"


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("user", "no json"),
        ("user", "[" * 100_000),
        ("user", "{}"),
        ("user", "[1]"),
        ("user", '[{"text": "a"}]'),
        ("user", '[{"type": "text"}]'),
        ("user", '[{"type": "text", "text": 5}]'),
        ("user", '[{"type": "hologram"}]'),
        ("user", json.dumps(CALLS)),
        ("assistant", '[{"type": "tool_call", "name": "look"}]'),
        ("tool", "[]"),
        ("tool", json.dumps(RESULT * 2)),
        ("tool", '[{"type": "text", "text": "a"}]'),
        ("note", json.dumps(text("for us"))),
        ("session_meta", "[]"),
    ],
)
def test_it_refuses_what_it_cannot_read(kind: str, parts: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        WIRE.encode(a_row(kind, parts))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
kinds = st.sampled_from(["user", "assistant", "tool", "operator", "notice", "summary", "system"])


@given(kinds, json_values)
def test_it_reads_or_refuses_any_json(kind: str, value: object) -> None:
    try:
        piece = WIRE.encode(a_row(kind, json.dumps(value)))
    except ValueError:
        return
    assert json.loads(piece)["role"]


@given(st.text(st.characters(), max_size=50))
def test_it_encodes_any_text_into_a_body_that_can_be_sent(words: str) -> None:
    row = a_row("user", text(words))
    body = a_body(WIRE.encode(row), prompt=Prompt("hash", words + "."))
    assert body == a_body(WIRE.encode(row), prompt=Prompt("hash", words + "."))
    sent = json.loads(body)["messages"][1]["content"]
    assert len(sent) == len(words)
    assert not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in sent)


def test_it_puts_everything_else_before_the_messages() -> None:
    prompt = Prompt("hash", "Be Hermes.", '[{"type":"function"}]')
    body = a_body('{"role":"user","content":"Hi"}', prompt=prompt)
    assert body == (
        b'{"model":"fake-1","stream":true,"stream_options":{"include_usage":true},'
        b'"tools":[{"type":"function"}],"messages":[{"role":"system","content":"Be Hermes."},'
        b'{"role":"user","content":"Hi"}]}'
    )


def test_it_leaves_out_an_empty_prompt_and_no_tools() -> None:
    sent = json.loads(a_body('{"role":"user","content":"Hi"}', prompt=Prompt("hash", "")))
    assert "tools" not in sent
    assert [message["role"] for message in sent["messages"]] == ["user"]


@given(st.lists(st.text(), min_size=1, max_size=6), st.text())
def test_a_grown_request_starts_with_the_request_before(texts: list[str], system: str) -> None:
    prompt = Prompt("hash", system)
    pieces = [WIRE.encode(a_row("user", text(one))) for one in texts]
    shorter, longer = a_body(*pieces[:-1], prompt=prompt), a_body(*pieces, prompt=prompt)
    assert longer.startswith(shorter.removesuffix(b"]}"))


def test_it_hints_at_the_cache_only_to_openai_itself() -> None:
    chosen = RequestSettings(temperature=0.5, max_output_tokens=100)

    def sent(wire: OpenAIChatWire) -> dict[str, object]:
        body: dict[str, object] = json.loads(
            wire.body(
                model="m", prompt=Prompt("h", ""), pieces=[], settings=chosen, session_id=SESSION
            )
        )
        return body

    theirs, own = sent(WIRE), sent(OpenAIChatWire(official=True))
    assert "prompt_cache_key" not in theirs
    assert (theirs["max_tokens"], theirs["temperature"]) == (100, 0.5)
    assert own["prompt_cache_key"] == str(SESSION)
    assert own["max_completion_tokens"] == 100


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("functions.look", "functions_look"),
        ("<b>look</b>\n\0", "_b_look__b___"),
        ("", "unnamed"),
        ("é" * 100, "_" * 64),
    ],
)
def test_it_sends_back_no_name_that_servers_refuse(name: str, sent: str) -> None:
    """Models make names up; each later request of the conversation would be refused for it."""
    part: dict[str, object] = {"type": "tool_call", "id": "c1", "name": name, "arguments": "{}"}
    [call] = json.loads(WIRE.encode(a_row("assistant", [part])))["tool_calls"]
    assert call["function"]["name"] == sent


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"at": 1e22}', '{"at": 1e22}'),
        ("[1]", "{}"),
        ("3", "{}"),
        ('{"at": NaN}', "{}"),
        ('{"at": "\\ud83d"}', '{"at":"\ufffd"}'),
        ('{"at": "\\ud83d\\ude00 \\uDC00"}', '{"at":"\U0001f600 \ufffd"}'),
        ('{"at": "\\ud83d", "by": 1e999}', "{}"),
        ("[" * 100_000, "{}"),
    ],
)
def test_it_sends_back_arguments_that_every_server_can_read(written: str, sent: str) -> None:
    assert call_arguments(written) == sent


@pytest.mark.parametrize(
    ("call_id", "kept", "kept_by_openai"),
    [
        ("call_1", True, True),
        ("c" * 40, True, True),
        ("c" * 41, True, False),
        ("functions.look:0", True, False),
        ("", False, False),
        ("a b", False, False),
        ("a\x00", False, False),
        ("c" * 5000, False, False),
    ],
)
def test_it_sends_an_id_that_the_server_takes(
    call_id: str, kept: bool, kept_by_openai: bool
) -> None:
    call: Parts = [{"type": "tool_call", "id": call_id, "name": "look", "arguments": "{}"}]
    result: Parts = [{"type": "tool_result", "callId": call_id, "content": "Seen"}]
    for wire, as_it_is in ((WIRE, kept), (OpenAIChatWire(official=True), kept_by_openai)):
        [made] = json.loads(wire.encode(a_row("assistant", call)))["tool_calls"]
        answered = json.loads(wire.encode(a_row("tool", result)))
        assert made["id"] == answered["tool_call_id"]
        assert (made["id"] == call_id) == as_it_is
        assert as_it_is or STRICT.fullmatch(made["id"])


def test_it_keeps_ids_apart_that_servers_do_not_take() -> None:
    ids = ["a:1", "a.1", "a 1", "a" * 50, "a" * 51]
    parts: Parts = [{"type": "tool_call", "id": one, "name": "f", "arguments": ""} for one in ids]
    told = json.loads(OpenAIChatWire(official=True).encode(a_row("assistant", parts)))
    assert len({call["id"] for call in told["tool_calls"]}) == len(ids)


def test_it_tells_calls_from_results() -> None:
    assert tool_calls(a_row("assistant", CALLS)) == ("c1", "c2")
    assert tool_calls(a_row("user", text("Hi"))) == ()
    assert tool_result_of(a_row("tool", RESULT)) == "c1"
    assert tool_result_of(a_row("assistant", CALLS)) is None
