"""Anthropic's wire: what a row and a request look like, to the byte."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_app.providers.anthropic_wire import CACHE_HINT, MAX_HINTS, AnthropicWire
from gateway_app.providers.base import Prompt, RequestSettings
from gateway_app.providers.call_ids import STRICT, sent_call_id
from gateway_app.providers.rows import OPERATOR_PREFIX
from sessions_app.fields import dump_json
from sessions_app.signals import TranscriptRow
from tests.gateway_app.providers.conftest import SESSION

Parts = list[dict[str, object]]

WIRE = AnthropicWire()
ROW = UUID(int=1)
TOOLS = json.dumps(
    [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Looks.",
                "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
            },
        }
    ]
)
SIGNED: Parts = [
    {"type": "reasoning", "text": 'Hm, \u2028 "so"', "signature": "EqQB+/=="},
    {"type": "redacted_reasoning", "data": "c2VjcmV0"},
    {"type": "text", "text": "Let me look."},
    {"type": "tool_call", "id": "toolu_1", "name": "look", "arguments": '{"at": 1e22}'},
]


def row(kind: str, parts: Parts, sent: Parts | None = None) -> TranscriptRow:
    sent_text = None if sent is None else dump_json(sent)
    return TranscriptRow(ROW, 1, kind, "active", dump_json(parts), sent_text)


def text(value: str) -> Parts:
    return [{"type": "text", "text": value}]


def encoded(kind: str, parts: Parts, sent: Parts | None = None) -> Any:
    return json.loads(WIRE.encode(row(kind, parts, sent)))


def body(*pieces: str, system: str = "You are Hermes.", tools: str = "[]", **fields: Any) -> bytes:
    return WIRE.body(
        model="claude-x",
        prompt=Prompt("hash", system, tools),
        pieces=pieces,
        settings=RequestSettings(**fields),
        session_id=SESSION,
    )


def without_hints(raw: bytes) -> str:
    return raw.decode().replace(CACHE_HINT, "")


@pytest.mark.parametrize(
    ("kind", "parts", "role", "blocks"),
    [
        ("user", text("Hi"), "user", text("Hi")),
        ("user", text(" \n"), "user", text("(no text)")),
        ("assistant", text("Yes"), "assistant", text("Yes")),
        ("assistant", text(""), "assistant", text("(no text)")),
        ("operator", text("Me"), "user", text(OPERATOR_PREFIX + "Me")),
        ("notice", text("It failed"), "user", text("[Notice: It failed]")),
        ("system", text("Be kind"), "user", text("[Instruction: Be kind]")),
        (
            "summary",
            text("They met"),
            "user",
            text("[Summary of the conversation until here: They met]"),
        ),
        (
            "tool",
            [{"type": "tool_result", "callId": "toolu_1", "content": "42"}],
            "user",
            [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}],
        ),
        (
            "tool",
            [{"type": "tool_result", "callId": "a b", "content": "", "error": True}],
            "user",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": sent_call_id("a b", STRICT),
                    "content": "(no output)",
                    "is_error": True,
                }
            ],
        ),
    ],
)
def test_it_encodes_every_kind_the_model_sees(
    kind: str, parts: Parts, role: str, blocks: Parts
) -> None:
    assert encoded(kind, parts) == {"role": role, "content": blocks}


def test_it_sends_signed_reasoning_back_unchanged_and_in_order() -> None:
    shown: Parts = [{"type": "reasoning", "text": "Hm"}, *SIGNED[2:]]
    assert encoded("assistant", shown, SIGNED)["content"] == [
        {"type": "thinking", "thinking": 'Hm, \u2028 "so"', "signature": "EqQB+/=="},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1e22}},
    ]
    assert '"input":{"at": 1e22}' in WIRE.encode(row("assistant", SIGNED))


def test_it_keeps_unsigned_reasoning_to_itself() -> None:
    parts: Parts = [{"type": "reasoning", "text": "Hm"}, *text("Yes")]
    assert encoded("assistant", parts)["content"] == text("Yes")
    odd: Parts = [{"type": "reasoning", "text": "Hm", "signature": 5}, *text("Yes")]
    assert encoded("assistant", odd)["content"] == text("Yes")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [('{"a": "é"}', {"a": "é"}), ("", {}), ("[1]", {}), ("{broken", {}), (' {"a":1} ', {"a": 1})],
)
def test_it_sends_arguments_as_an_object(arguments: str, wanted: object) -> None:
    parts: Parts = [{"type": "tool_call", "id": "x-1", "name": "f.g", "arguments": arguments}]
    assert encoded("assistant", parts)["content"] == [
        {"type": "tool_use", "id": "x-1", "name": "f_g", "input": wanted}
    ]


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "image"}],
        [{"type": "tool_call", "id": "c"}],
        [{"type": "text"}],
        "text",
        [{"type": "text", "text": 5}],
    ],
)
def test_it_refuses_parts_that_it_cannot_read(parts: Any) -> None:
    with pytest.raises(ValueError, match="part"):
        WIRE.encode(row("assistant", parts))


def test_it_puts_everything_before_the_messages() -> None:
    sent = json.loads(body(WIRE.encode(row("user", text("Hi"))), tools=TOOLS, temperature=0.5))
    hint = {"type": "ephemeral"}
    assert list(sent) == [
        "model", "max_tokens", "temperature", "stream", "tools", "system", "messages",
    ]  # fmt: skip
    assert sent["max_tokens"] == 32_000
    assert sent["tools"] == [
        {
            "name": "look",
            "description": "Looks.",
            "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}},
            "cache_control": hint,
        }
    ]
    assert sent["system"] == [{"type": "text", "text": "You are Hermes.", "cache_control": hint}]
    assert sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": hint}]}
    ]


def test_it_sends_neither_an_empty_prompt_nor_no_tools() -> None:
    sent = json.loads(body(WIRE.encode(row("user", text("Hi"))), system="", max_output_tokens=9))
    assert "system" not in sent
    assert "tools" not in sent
    assert sent["max_tokens"] == 9


def test_it_joins_messages_of_one_role() -> None:
    """So that the results of several calls stand in one message, which the server demands."""
    pieces = [
        WIRE.encode(row("user", text("Look"))),
        WIRE.encode(row("assistant", SIGNED)),
        WIRE.encode(row("tool", [{"type": "tool_result", "callId": "toolu_1", "content": "1"}])),
        WIRE.encode(row("user", text("Faster"))),
    ]
    messages = json.loads(without_hints(body(*pieces)))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "text"]


def test_a_conversation_begins_with_a_user() -> None:
    messages = json.loads(body(WIRE.encode(row("assistant", text("Welcome")))))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"]


ROWS = st.lists(
    st.sampled_from(
        [
            row("user", text('Hi ]}]} "cache_control"')),
            row("assistant", text("Yes }]")),
            row("assistant", SIGNED),
            row("tool", [{"type": "tool_result", "callId": "toolu_1", "content": "}]}"}]),
            row("operator", text("Me")),
            row("notice", text("Oh")),
        ]
    ),
    min_size=1,
    max_size=12,
)


@given(rows=ROWS, more=ROWS, tools=st.sampled_from(["[]", TOOLS]))
@settings(max_examples=200)
def test_a_grown_request_starts_with_the_one_before(
    rows: list[TranscriptRow], more: list[TranscriptRow], tools: str
) -> None:
    """Cache hints aside, and but for the brackets that close the last message."""
    pieces = [WIRE.encode(one) for one in rows]
    old = without_hints(body(*pieces, tools=tools))
    new = without_hints(body(*pieces, *map(WIRE.encode, more), tools=tools))
    assert old.endswith("]}]}")
    assert new.startswith(old.removesuffix("]}]}"))
    json.loads(new)


@given(rows=ROWS, tools=st.sampled_from(["[]", TOOLS]), system=st.sampled_from(["", "Be."]))
@settings(max_examples=200)
def test_it_gives_at_most_four_cache_hints_and_one_at_the_end(
    rows: list[TranscriptRow], tools: str, system: str
) -> None:
    sent = body(*map(WIRE.encode, rows), tools=tools, system=system)
    told = json.loads(sent)
    blocks = [block for message in told["messages"] for block in message["content"]]
    hinted = [block for block in blocks if "cache_control" in block]
    fixed = told.get("tools", []) + told.get("system", [])
    assert len(hinted) + len([one for one in fixed if "cache_control" in one]) <= MAX_HINTS
    assert not any(block["type"].endswith("thinking") for block in hinted)
    users = [message for message in told["messages"] if message["role"] == "user"]
    for message in users[-2:]:
        assert message["content"][-1] in hinted


def test_it_is_the_same_every_time() -> None:
    """A byte that changes here changes what is cached: then the wire's name must change too."""
    assert WIRE.name == "anthropic-messages/3"
    assert WIRE.encode(row("assistant", SIGNED)) == (
        '{"role":"assistant","content":[{"type":"thinking","thinking":"Hm, \u2028 \\"so\\"",'
        '"signature":"EqQB+/=="},{"type":"redacted_thinking","data":"c2VjcmV0"},'
        '{"type":"text","text":"Let me look."},'
        '{"type":"tool_use","id":"toolu_1","name":"look","input":{"at": 1e22}}]}'
    )
