"""A run whose process died is closed in the log, and the next run of its turn is whole again."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from sessions_app.models import Message, Session
from tests.ag_ui_verifier import Json
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.heart import counted
from tests.session_log import kinds, verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """A process that looks for orphans often."""
    return replace(config, heartbeat_s=0.05)


async def crash(gateway: GatewayHost, session_id: str) -> None:
    """Every run of this process is gone as it stood, and its lease has run out."""
    await gateway.runner.aclose()
    gateway.runner.draining = False  # from now on it is the process that finds what was left
    await sync_to_async(Session.objects.filter(pk=UUID(session_id)).update)(
        lease_expires_at=timezone.now() - timedelta(seconds=1)
    )


@sync_to_async
def rows_of(session_id: str) -> list[tuple[str, str, str | None]]:
    rows = Message.objects.filter(session_id=UUID(session_id)).exclude(kind="session_meta")
    return list(rows.order_by("position").values_list("kind", "state", "finish"))


def errors(client: SocketClient, turn_id: str) -> list[Json]:
    found = [frame["event"] for frame in client.events(turn_id=turn_id)]
    return [event for event in found if event["type"] == "RUN_ERROR"]


@pytest.mark.parametrize(
    ("dying", "shown"),
    [
        (Script(headers_gate=Gate()), ""),
        (Script(tokens=["Half ", "an answer"], gates={1: Gate()}), "TEXT_MESSAGE_CONTENT"),
        (Script(reasoning=["Well, ", "so"], gates={1: Gate()}), "REASONING_MESSAGE_CONTENT"),
    ],
    ids=["nothing-shown", "amid-text", "amid-reasoning"],
)
async def test_it_closes_a_dead_run_and_runs_the_turn_again(
    gateway: GatewayHost, model: FakeModelServer, owner: User, dying: Script, shown: str
) -> None:
    model.script(dying, Script(tokens=["A whole ", "answer."]))
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await model.request(0)
        await client.until(lambda: not shown or shown in kinds(client.events()))
        await crash(gateway, sent["sessionId"])
        finished = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert finished["type"] == "RUN_FINISHED"
    assert finished["runId"] == f"{sent['turnId']}.2"
    [error] = errors(client, sent["turnId"])
    assert (error["code"], error["metadata"]["hermes"]["retrying"]) == ("interrupted", True)
    interrupted = [("assistant", "superseded", "interrupted")] if shown else []
    assert await rows_of(sent["sessionId"]) == [
        ("user", "active", None), *interrupted, ("assistant", "active", "stop"),
    ]  # fmt: skip


async def test_it_goes_on_from_the_steps_that_were_committed(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(
        Script(tokens=["Let me look. "], tool_calls=[ToolCall("a1", "look")]),
        Script(tokens=["I ", "see"], gates={1: Gate()}),
        Script(tokens=["Nothing."]),
    )
    async with SocketClient(owner) as client:
        sent = await client.say("what is above?")
        await client.until(lambda: client.text(sent["turnId"]).endswith("I "))
        await crash(gateway, sent["sessionId"])
        await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert [message["role"] for message in model.requests[2].messages[1:]] == [
        "user", "assistant", "tool",
    ]  # fmt: skip
    states = [(kind, state) for kind, state, _ in await rows_of(sent["sessionId"])]
    assert states == [
        ("user", "active"), ("assistant", "active"), ("tool", "active"),
        ("assistant", "superseded"), ("assistant", "active"),
    ]  # fmt: skip


async def test_it_ends_a_dead_run_that_was_told_to_stop(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["Half ", "an answer"], gates={1: Gate()}))
    before = counted("stopped", "")
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.until(lambda: client.text(sent["turnId"]))
        await gateway.runner.aclose()
        await client.ok("turn.stop", turnId=sent["turnId"])
        await crash(gateway, sent["sessionId"])
        finished = await client.finished(sent["turnId"])
        await verified(client, sent["sessionId"])
    assert finished["outcome"] == {"type": "cancelled"}
    assert counted("stopped", "") == before + 1
    assert await rows_of(sent["sessionId"]) == [
        ("user", "active", None), ("assistant", "active", "stopped"),
    ]  # fmt: skip


async def test_it_gives_a_turn_up_that_crashes_again_and_again(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.default = Script(tokens=["Half ", "an answer"], gates={1: Gate()})
    before = counted("interrupted", "interrupted")
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        waiting = await client.say("are you there?", sent["sessionId"])
        for run in range(1, 4):
            await client.until(lambda run=run: client.text(sent["turnId"]).count("Half") == run)
            if run == 3:
                model.default = Script()
            await crash(gateway, sent["sessionId"])
        error = await client.finished(sent["turnId"])
        await client.finished(waiting["turnId"])
        await verified(client, sent["sessionId"])
    assert error["metadata"]["hermes"]["retrying"] is False
    assert counted("interrupted", "interrupted") == before + 1
    assert [kind for kind, *_ in await rows_of(sent["sessionId"])] == [
        "user", "assistant", "assistant", "assistant", "notice", "user", "assistant",
    ]  # fmt: skip
