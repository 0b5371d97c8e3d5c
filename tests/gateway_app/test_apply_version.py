"""A running conversation moves to an agent's new version when told, and says so once."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from gateway_app.models import Agent, Turn
from gateway_app.services import agents as services
from tests.fake_model_server import FakeModelServer
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def save_version(prompt: str) -> int:
    agent = Agent.objects.get(is_default=True)
    version = services.save_agent_version(
        agent=agent, model="", system_prompt=prompt, temperature=None, max_output_tokens=None,
        created_by_id=None,
    )  # fmt: skip
    return version.number


@sync_to_async
def apply(number: int) -> int:
    return services.apply_version(agent=Agent.objects.get(is_default=True), number=number)


@sync_to_async
def verdicts() -> list[tuple[str, str]]:
    return list(Turn.objects.order_by("accepted_seq").values_list("verdict", "reason"))


async def test_it_moves_a_conversation_by_one_rebuild(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        session_id = None

        async def say(text: str) -> None:
            nonlocal session_id
            sent = await client.say(text, session_id)
            session_id = sent["sessionId"]
            await client.finished(sent["turnId"])
            assert await gateway.runner.wait_idle(60)

        await say("one")
        number = await save_version("Answer in verse.")
        await say("two")
        assert await apply(number) == 1
        await say("three")
        await say("four")
    assert await verdicts() == [
        ("new", ""), ("reuse", ""), ("rebuild", "reconfigured"), ("reuse", ""),
    ]  # fmt: skip
    prompts = [request.json["messages"][0]["content"] for request in model.requests]
    assert prompts[1] == prompts[0] != "Answer in verse."
    assert prompts[2:] == ["Answer in verse."] * 2
