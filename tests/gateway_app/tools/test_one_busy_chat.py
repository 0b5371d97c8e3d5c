"""A conversation whose tools block holds nobody else up."""

import asyncio

import pytest
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from tests.fake_model_server import FakeModelServer, Gate, Json, Script, ToolCall
from tests.socket_client import SocketClient
from tests.toolbox import agent_tools

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("equipped")]

OTHERS = 20
BLOCKING = [ToolCall(f"b{number}", "look", ['{"where": "left"}']) for number in range(10)]
QUICK = [ToolCall("a1", "look", ['{"where": "up"}'])]
WORDS = [f"word{number} " for number in range(10)]


def answer(body: Json) -> Script:
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Script(tokens=WORDS)
    return Script(tokens=[], tool_calls=BLOCKING if last["content"] == "block" else QUICK)


async def test_it_answers_in_twenty_chats_while_the_tools_of_one_block(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case C8: streamed text and tools alike; more calls block than a process runs at once."""
    agent_tools.gates["left"] = Gate()
    model.default = answer
    async with SocketClient(owner) as client:
        busy = await client.say("block")
        await agent_tools.called("b0")
        others = await asyncio.gather(*(client.say(f"{number}") for number in range(OTHERS)))
        for sent in others:
            assert (await client.finished(sent["turnId"]))["type"] == "RUN_FINISHED"
            assert client.text(sent["turnId"]) == "".join(WORDS)
        assert (await Turn.objects.aget(pk=busy["turnId"])).state == "running"
        agent_tools.gates["left"].release()
        await client.finished(busy["turnId"])
        assert client.text(busy["turnId"]) == "".join(WORDS)
    assert len(agent_tools.calls) == OTHERS + len(BLOCKING)
