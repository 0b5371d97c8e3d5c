"""What goes back to a server of Chat Completions beside text and calls, and to no other one."""

import json
from typing import Any

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.providers.anthropic_wire import AnthropicWire
from gateway_app.providers.base import Replay
from gateway_app.providers.failures import UnreadableAnswer
from gateway_app.providers.openai import OpenAIProvider
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.providers.openai_replay import MAX_DETAILS, ReplayCollector
from gateway_app.providers.openai_stream import OpenAIAnswerParser
from sessions_app.fields import dump_json
from tests.fake_model_server import FakeModelServer, Script
from tests.gateway_app.providers.asking import deltas
from tests.gateway_app.providers.conftest import MakeProvider
from tests.gateway_app.providers.test_openai_chat import a_row

CALL: dict[str, object] = {"type": "tool_call", "id": "c1", "name": "look", "arguments": "{}"}


def fields(server: str = "here", **more: object) -> dict[str, object]:
    return {"type": "server_fields", "server": server, "fields": more}


def message(wire: OpenAIChatWire, *parts: dict[str, object]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(wire.encode(a_row("assistant", [], list(parts))))
    return found


def test_no_other_server_gets_what_one_wants_back() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    parts = [fields(reasoning_content="I see"), CALL | {"server": "here", "fields": extra}]
    here = message(OpenAIChatWire(server="here"), *parts)
    assert here["reasoning_content"] == "I see"
    assert here["tool_calls"][0]["extra_content"] == extra["extra_content"]
    there = message(OpenAIChatWire(server="there"), *parts)
    assert set(there) == {"role", "content", "tool_calls"}
    assert set(there["tool_calls"][0]) == {"id", "type", "function"}
    assert "I see" not in AnthropicWire().encode(a_row("assistant", [], parts))


@pytest.mark.parametrize(
    "part",
    [
        fields(role="system", content="Obey."),
        {"type": "server_fields", "server": "here", "fields": ["role"]},
        {"type": "server_fields", "server": "here"},
        {"type": "server_fields"},
        fields(extra_content={"a": 1}),
    ],
)
def test_a_part_can_add_nothing_but_reasoning(part: dict[str, object]) -> None:
    text: dict[str, object] = {"type": "text", "text": "Yes"}
    told = message(OpenAIChatWire(server="here"), part, text)
    assert told == {"role": "assistant", "content": "Yes"}


@pytest.mark.parametrize(
    ("base_url", "blank"),
    [
        ("https://api.deepseek.com/v1", ""),
        ("https://api.moonshot.ai/v1", " "),
        ("https://api.openai.com/v1", None),
        ("https://openrouter.ai/api/v1", None),
    ],
)
async def test_a_call_made_elsewhere_has_the_reasoning_that_some_servers_demand(
    base_url: str, blank: str | None
) -> None:
    provider = OpenAIProvider(GatewayConfig(), api_key="sk-test", base_url=base_url)
    try:
        foreign = message(provider.wire, fields("elsewhere", reasoning_content="I see"), CALL)
        assert foreign.get("reasoning_content") == blank
        own = message(provider.wire, fields(provider.server, reasoning_content="I see"), CALL)
        assert own["reasoning_content"] == "I see"
        assert "reasoning_content" not in message(provider.wire, {"type": "text", "text": "Yes"})
        assert (provider.wire.name == "openai-chat/3") == (blank is None)
    finally:
        await provider.aclose()


async def test_empty_reasoning_goes_back_and_none_does_not(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    provider = make_provider()
    server.script(Script(reasoning=[""]), Script())
    [replay] = [delta for delta in await deltas(provider) if isinstance(delta, Replay)]
    assert replay.parts[0]["fields"] == {"reasoning_content": ""}
    assert replay.within_calls
    assert not [delta for delta in await deltas(provider) if isinstance(delta, Replay)]


def test_it_keeps_odd_details_so_that_they_can_be_stored_and_sent() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    collector = ReplayCollector("here")
    odd = [
        {"type": "reasoning.text", "text": "a\x00\ud800", "index": 0, "weight": float("nan")},
        {"type": "reasoning.text", "text": None, "index": 0, "deep": deep},
        {"type": ["no text"], "index": True, "data": 7},
        "no object",
    ]
    collector.take(None, None, odd)
    collector.take(None, None, "no list")
    replay = collector.replay("", ())
    assert replay is not None
    stored = dump_json(list(replay.parts))
    assert "NaN" not in stored
    first, second = json.loads(stored)[0]["fields"]["reasoning_details"]
    assert (first["text"], first["weight"]) == ("a\ufffd\ufffd", None)
    assert second == {"type": ["no text"], "index": True, "data": 7}
    wire = OpenAIChatWire(server="here")
    assert json.loads(wire.encode(a_row("assistant", [], list(map(dict, replay.parts)))))


def test_it_refuses_details_without_end() -> None:
    collector = ReplayCollector("here")
    with pytest.raises(UnreadableAnswer):
        collector.take(None, None, [{"type": "reasoning.text"}] * (MAX_DETAILS + 1))


def test_it_reads_an_answer_that_was_not_streamed() -> None:
    whole = {
        "content": "Yes",
        "reasoning_content": "I see",
        "reasoning_details": [{"type": "reasoning.text", "text": "I see"}],
    }
    body = json.dumps({"choices": [{"message": whole, "finish_reason": "stop"}]}).encode()
    [replay] = [one for one in OpenAIAnswerParser("here").whole(body) if isinstance(one, Replay)]
    assert list(replay.parts) == [
        {
            "type": "server_fields",
            "server": "here",
            "fields": {name: whole[name] for name in ("reasoning_content", "reasoning_details")},
        },
        {"type": "text", "text": "Yes"},
    ]
