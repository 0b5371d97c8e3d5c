"""Calls keep the ids that their server gave them, and no id parts a call from its result."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.providers.anthropic_wire import CACHE_HINT
from gateway_app.providers.call_ids import STRICT
from tests.ag_ui_verifier import Json
from tests.fake_model_server import FakeModelServer, Script, ToolCall
from tests.gateway_app.tools.conftest import results, rows_of, with_anthropic
from tests.session_log import verified
from tests.socket_client import SocketClient
from tests.toolbox import agent_tools

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("equipped")]

KEPT = ["functions.look:0", "chatcmpl-tool-0123456789abcdef0123456789abcdef", "a|b/c=", "7" * 4096]
"""Whoever gave one of these wants it back as it was."""
STRANGE = ["", "", "twice", "twice", "x" * 1_000_000, "a\x00b", "a\nb", "a b", "ä", "\u202e"]
"""None of these can be an id, but for the first `twice`."""


def looks(ids: Sequence[str]) -> Script:
    return Script(tokens=[], tool_calls=[ToolCall(one, "look", ['{"where": "up"}']) for one in ids])


async def two_turns(model: FakeModelServer, owner: User, ids: Sequence[str]) -> str:
    """In each of two turns the model makes calls of these ids; their session."""
    model.script(looks(ids), Script(), looks(ids), Script())
    async with SocketClient(owner) as client:
        sent = await client.say("look")
        await client.finished(sent["turnId"])
        again = await client.say("once more", sent["sessionId"])
        await client.finished(again["turnId"])
        await verified(client, sent["sessionId"])
    assert len(agent_tools.calls) == 2 * len(ids)
    sent_bodies = [one.body.replace(CACHE_HINT.encode(), b"") for one in model.requests]
    for before, after in pairwise(sent_bodies):
        assert after.startswith(before.rstrip(b"]}"))
    return str(sent["sessionId"])


def calls_and_results(messages: Sequence[Json]) -> tuple[list[str], list[str]]:
    """The ids of all calls of a Chat Completions request, and those that its results name."""
    calls = [call["id"] for one in messages for call in one.get("tool_calls", ())]
    return calls, [one["tool_call_id"] for one in messages if one["role"] == "tool"]


async def test_a_server_gets_back_what_it_gave(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    session_id = await two_turns(model, owner, KEPT)
    made, answered = calls_and_results(model.requests[-1].messages)
    assert made == answered
    assert made[: len(KEPT)] == KEPT
    assert len(set(made)) == 2 * len(KEPT)  # what it gave again is no name for another call
    assert [call_id for call_id, *_ in results(await rows_of(session_id))] == made


async def test_what_can_be_no_id_gets_one(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    session_id = await two_turns(model, owner, STRANGE)
    made, answered = calls_and_results(model.requests[-1].messages)
    assert made == answered
    assert len(set(made)) == 2 * len(STRANGE)
    assert made.count("twice") == 1
    assert all(STRICT.fullmatch(one) for one in made)
    assert len(json.dumps(await rows_of(session_id))) < 20_000


class TestAnthropic:
    """Messages takes few characters, and each id once."""

    @pytest.fixture
    def config(self, config: GatewayConfig, model: FakeModelServer) -> GatewayConfig:
        return with_anthropic(config, model)

    @pytest.mark.parametrize("ids", [KEPT, STRANGE, ["a:1", "a.1", "a_1", "toolu_1"]])
    async def test_every_call_and_its_result_share_an_id_of_their_own(
        self, gateway: GatewayHost, model: FakeModelServer, owner: User, ids: list[str]
    ) -> None:
        await two_turns(model, owner, ids)
        blocks = [block for one in model.requests[-1].messages for block in one["content"]]
        made = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert made == [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
        assert len(set(made)) == 2 * len(ids)
        assert all(STRICT.fullmatch(one) for one in made)
        assert set(filter(STRICT.fullmatch, ids)) <= set(made)
