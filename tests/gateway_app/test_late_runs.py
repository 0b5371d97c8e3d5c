"""A run that lost its turn and lives on changes nothing any more (case E55)."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import AgentVersion
from sessions_app.models import Session
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.busy.held import states_of
from tests.gateway_app.coherence.elsewhere import cached, in_database, session_of, turn_of
from tests.gateway_app.heart import beat
from tests.gateway_app.tools.conftest import rows_of
from tests.session_log import verified
from tests.socket_client import SocketClient
from tests.toolbox import agent_tools

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """The heart of the process that lost its lease stands still, and so it hears nothing of it."""
    return replace(config, heartbeat_s=3600)


async def taken_over(other: GatewayHost, session_id: str) -> None:
    """The lease runs out, and the other process goes on with the turn."""
    session = Session.objects.filter(pk=session_id)
    await in_database(session.update, lease_expires_at=timezone.now() - timedelta(seconds=1))
    await beat(other)


@pytest.mark.parametrize("late", ["an answer", "a tool's result"])
async def test_it_leaves_the_successor_alone(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User, late: str
) -> None:
    first, second = Gate(), Gate()
    if late == "an answer":
        begun = Script(tokens=["late ", "words"], gates={1: first})
    else:
        await in_database(AgentVersion.objects.update, tools="look")
        agent_tools.forget()
        agent_tools.gates["left"] = first
        begun = Script(tokens=["late "], tool_calls=[ToolCall("a1", "look", ['{"where":"left"}'])])
    model.script(begun, Script(tokens=["its ", "own"], gates={1: second}))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        session_id, turn_id = sent["sessionId"], sent["turnId"]
        await client.until(lambda: client.text(turn_id))
        if late != "an answer":
            await agent_tools.called("a1")
        await taken_over(other, session_id)
        await (await model.request(1)).started.wait()
        before = await rows_of(session_id)
        first.release()
        assert await gateway.runner.wait_idle(60)
        session, turn = (
            await in_database(session_of, UUID(session_id)),
            await in_database(turn_of, turn_id),
        )
        assert (session.lease_owner, session.open_block) == (other.lease_owner, turn.block)
        assert (turn.state, turn.generation) == ("running", session.run_generation)
        assert await rows_of(session_id) == before
        assert not other.cache.evict(UUID(session_id))
        second.release()
        assert await other.runner.wait_idle(60)
        assert (await client.finished(turn_id))["type"] == "RUN_FINISHED"
        await verified(client, session_id)
    assert await in_database(states_of, session_id) == ["completed"]
    answers = [parts[0]["text"] for kind, _, parts in await rows_of(session_id)
               if kind == "assistant"]  # fmt: skip
    assert answers[-1] == "its own"
    assert "words" not in "".join(answers)
    assert cached(other, UUID(session_id)).rows
