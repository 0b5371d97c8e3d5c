"""A stop ends a turn in every phase, whoever gives it, and the model's connection with it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Agent, AgentVersion
from gateway_app.services import queue as queues
from gateway_app.services.agents import save_agent_version
from tests.fake_model_server import FakeModelServer, Gate, Json, Script, ToolCall
from tests.gateway_app.busy.held import said, states_of
from tests.gateway_app.coherence.elsewhere import in_database
from tests.session_log import verified
from tests.socket_client import PATIENCE_S, SocketClient
from tests.statements import every_connection
from tests.toolbox import agent_tools

pytestmark = pytest.mark.django_db(transaction=True)

LOOK = ToolCall("a1", "look", ['{"where": ', '"left"}'])


@pytest.fixture
def spare() -> Iterator[FakeModelServer]:
    """The server of the fallback model."""
    with FakeModelServer() as server:
        yield server


@pytest.fixture
def config(config: GatewayConfig, spare: FakeModelServer) -> GatewayConfig:
    return replace(
        config, max_retries=2, anthropic_api_key="sk-ant-test", anthropic_base_url=spare.url
    )


@dataclass
class Stage:
    """Where a turn is brought to; every gate is released at the test's end."""

    client: SocketClient
    model: FakeModelServer
    spare: FakeModelServer
    gates: list[Gate] = field(default_factory=list)

    def gate(self) -> Gate:
        self.gates.append(Gate())
        return self.gates[-1]

    async def say(self, text: str = "first") -> Json:
        return await self.client.say(text)

    async def showing(self, kind: str) -> Json:
        """A turn that has shown an event of this kind."""
        sent = await self.say()
        await self.client.until(
            lambda: any(frame["event"]["type"] == kind for frame in self.client.events())
        )
        return sent


async def accepted(stage: Stage) -> Json:
    stage.model.script(Script(headers_gate=stage.gate()))
    return await stage.say()


async def before_the_answers_head(stage: Stage) -> Json:
    sent = await accepted(stage)
    await stage.model.request(0)
    return sent


async def before_the_first_token(stage: Stage) -> Json:
    stage.model.script(Script(gates={0: stage.gate()}))
    sent = await stage.say()
    await (await stage.model.request(0)).started.wait()
    return sent


async def mid_reasoning(stage: Stage) -> Json:
    stage.model.script(Script(reasoning=["Well, ", "so"], gates={1: stage.gate()}))
    return await stage.showing("REASONING_MESSAGE_CONTENT")


async def mid_text(stage: Stage) -> Json:
    stage.model.script(Script(tokens=["one ", "two"], gates={1: stage.gate()}))
    return await stage.showing("TEXT_MESSAGE_CONTENT")


async def mid_tool_call(stage: Stage) -> Json:
    script = Script(tokens=["I look. "], tool_calls=[LOOK], gates={2: stage.gate()})
    stage.model.script(script)
    return await stage.showing("TEXT_MESSAGE_CONTENT")


async def mid_tool(stage: Stage) -> Json:
    agent_tools.gates["left"] = stage.gate()
    stage.model.script(Script(tool_calls=[LOOK]))
    sent = await stage.say()
    await agent_tools.called("a1")
    return sent


async def before_the_answer_after_a_tool(stage: Stage) -> Json:
    stage.model.script(Script(tool_calls=[LOOK]), Script(headers_gate=stage.gate()))
    sent = await stage.say()
    await stage.model.request(1)
    return sent


async def in_a_pause_between_attempts(stage: Stage) -> Json:
    stage.model.script(Script(status=429, headers={"retry-after": "20"}))
    sent = await stage.say()
    await (await stage.model.request(0)).ended.wait()
    return sent


async def in_the_fallback(stage: Stage) -> Json:
    await in_database(give_a_fallback)
    stage.model.script(Script(status=503, headers={"retry-after": "600"}))
    stage.spare.script(Script(tokens=["one ", "two"], gates={1: stage.gate()}))
    return await stage.showing("TEXT_MESSAGE_CONTENT")


def give_a_fallback() -> None:
    save_agent_version(
        agent=Agent.objects.get(is_default=True), model="openai:fake-1",
        fallback_models="anthropic:claude-sonnet-5-5", system_prompt="You are Hermes.",
        temperature=None, max_output_tokens=None, created_by_id=None,
    )  # fmt: skip


PHASES: dict[str, Callable[[Stage], Awaitable[Json]]] = {
    phase.__name__: phase
    for phase in (
        accepted, before_the_answers_head, before_the_first_token, mid_reasoning, mid_text,
        mid_tool_call, mid_tool, before_the_answer_after_a_tool, in_a_pause_between_attempts,
        in_the_fallback,
    )
}  # fmt: skip


@pytest.fixture(autouse=True)
def equipped(transactional_db: None) -> Iterator[None]:
    AgentVersion.objects.filter(agent__is_default=True).update(tools="look")
    agent_tools.forget()
    yield
    agent_tools.forget()


async def stop(client: SocketClient, sent: Json, *, elsewhere: bool) -> None:
    """As this process obeys it at once, or as it finds it recorded by another one."""
    if elsewhere:
        order: dict[str, Any] = {"session_id": UUID(sent["sessionId"]), "turn_id": None}
        await in_database(queues.stop_turn, user_id=client.user.pk, **order)
    else:
        await client.ok("turn.stop", sessionId=sent["sessionId"])


def in_transactions() -> list[str]:
    return [one.alias for one in every_connection() if one.in_atomic_block]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize("phase", PHASES)
async def test_it_stops_in_every_phase_and_closes_the_models_connection(
    gateway: GatewayHost,
    model: FakeModelServer,
    spare: FakeModelServer,
    owner: User,
    phase: str,
    elsewhere: bool,
) -> None:
    async with SocketClient(owner) as client:
        stage = Stage(client, model, spare)
        with ExitStack() as held:
            held.callback(lambda: [gate.release() for gate in stage.gates])
            sent = await PHASES[phase](stage)
            await stop(client, sent, elsewhere=elsewhere)
            finished = await client.finished(sent["turnId"])
            assert finished["outcome"] == {"type": "cancelled"}
            asked = [*model.requests, *spare.requests]
            for request in asked:
                await request.ended.wait()
            if phase not in {"accepted", "mid_tool", "in_a_pause_between_attempts"}:
                assert asked[-1].closed_by_client
            model.default = Script(tokens=["its own answer"])
            model.forget_scripts()
            follow = await client.say("second", sent["sessionId"])
            await client.finished(follow["turnId"])
        assert client.text(follow["turnId"]) == "its own answer"
        known = {id(request) for request in asked}
        more = [one for one in (*model.requests, *spare.requests) if id(one) not in known]
        questions = sorted(one.json["messages"][-1]["content"] for one in more)
        # what was stopped as it was accepted may have been on its way to the model
        late = phase == "accepted" and not asked and len(more) == 2
        assert questions == (["first", "second"] if late else ["second"]), "nothing went on"
        await verified(client, sent["sessionId"])
    assert await in_database(states_of, sent["sessionId"]) == ["stopped", "completed"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
async def test_it_stops_what_waits_and_what_runs_goes_on(
    gateway: GatewayHost,
    model: FakeModelServer,
    spare: FakeModelServer,
    owner: User,
    elsewhere: bool,
) -> None:
    async with SocketClient(owner) as client:
        stage = Stage(client, model, spare)
        sent = await mid_text(stage)
        waiting = await client.say("later", sent["sessionId"])
        order = {"session_id": None, "turn_id": UUID(waiting["turnId"])}
        if elsewhere:
            await in_database(queues.stop_turn, user_id=owner.pk, **order)
        else:
            await client.ok("turn.stop", turnId=waiting["turnId"])
        stage.gates[0].release()
        assert (await client.finished(sent["turnId"]))["outcome"]["type"] == "success"
        assert await gateway.runner.wait_idle(60)
    assert await in_database(states_of, sent["sessionId"]) == ["completed", "stopped"]
    assert await in_database(said, sent["sessionId"]) == [
        ("user", "first"), ("assistant", "one two"),
    ]  # fmt: skip


@pytest.mark.parametrize("phase", PHASES)
async def test_it_holds_no_transaction_while_a_model_or_a_tool_is_waited_for(
    gateway: GatewayHost,
    model: FakeModelServer,
    spare: FakeModelServer,
    owner: User,
    phase: str,
) -> None:
    """Case E5. What else this process commits now and then is over in a moment: look again."""
    async with SocketClient(owner) as client:
        stage = Stage(client, model, spare)
        with ExitStack() as held:
            held.callback(lambda: [gate.release() for gate in stage.gates])
            sent = await PHASES[phase](stage)
            async with asyncio.timeout(PATIENCE_S):
                while await sync_to_async(in_transactions)():
                    await client.ok("ping")
            await client.ok("turn.stop", turnId=sent["turnId"])
            await client.finished(sent["turnId"])
