"""A message that steers what runs: it is never lost or doubled.

Cases E60, E61.
"""

from uuid import UUID

import pytest
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from sessions_app.models import Message, Session
from tests.fake_model_server import FakeModelServer, Gate, Json, Script
from tests.gateway_app.busy.held import LOOK, come, held, held_in_a_step, inbound, said, states_of
from tests.gateway_app.coherence.elsewhere import in_database, messages
from tests.gateway_app.heart import beat
from tests.session_log import verified
from tests.socket_client import SocketClient
from tests.statements import every_statement

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_writes_a_steering_message_after_the_tool_step_of_the_run(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case E60: a row of the transcript, and in the next model call."""
    async with SocketClient(owner) as client:
        gate, first = await held_in_a_step(client, model)
        session_id = first["sessionId"]
        queued = await client.say("later", session_id)
        steer: Json = {"cid": "steer-1", "whenBusy": "steer"}
        steered = await client.say("look left", session_id, **steer)
        assert steered["status"] == "steered"
        assert (await client.say("look left", session_id, **steer))["status"] == "steered"
        gate.release()
        finished = await client.finished(first["turnId"])
        await client.finished(queued["turnId"])
        frames = await verified(client, session_id)
        again = await client.say("look left", session_id, **steer)
    assert (again["turnId"], again["status"]) == (steered["turnId"], "absorbed")
    assert finished["metadata"]["hermes"]["cache"]["verdict"] == "reuse"
    assert messages(model, 1)[1:] == [
        ("user", "first"), ("assistant", "I look. "), ("tool", "There is no tool 'look'."),
        ("user", "look left"),
    ]  # fmt: skip
    assert await in_database(states_of, session_id) == ["completed", "completed", "absorbed"]
    shown = [frame for frame in frames if frame["event"].get("name") == "hermes.message"]
    [row] = [one for one in shown if one["event"]["value"].get("clientMessageId") == "steer-1"]
    assert row["turnId"] == first["turnId"]
    queues = [frame["event"]["value"]["queue"] for frame in frames
              if frame["event"].get("name") == "hermes.queue"]  # fmt: skip
    assert [[item["whenBusy"] for item in queue] for queue in queues] == [
        ["queue"], ["queue", "steer"], ["queue"], [],
    ]  # fmt: skip


async def test_it_answers_a_steering_message_that_no_step_took_as_a_turn(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held(client, model)
        steered = await client.say("left!", first["sessionId"], whenBusy="steer")
        assert steered["status"] == "steered"
        gate.release()
        assert (await client.finished(steered["turnId"]))["type"] == "RUN_FINISHED"
        await verified(client, first["sessionId"])
    assert await in_database(states_of, first["sessionId"]) == ["completed", "completed"]


async def test_it_runs_a_steering_message_where_nothing_runs(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case E61."""
    async with SocketClient(owner) as client:
        sent = await client.say("left!", whenBusy="steer")
        assert sent["status"] == "running"
        await client.finished(sent["turnId"])


async def test_it_steers_a_run_of_another_process(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held_in_a_step(client, model)
        session_id = UUID(first["sessionId"])
        accepted = await other.runner.accept(inbound(owner, "left!", "steer"), session_id)
        assert accepted.status == "steered"
        gate.release()
        await client.finished(first["turnId"])
    assert messages(model, 1)[-1] == ("user", "left!")


async def test_it_takes_a_steering_message_once_wherever_in_the_run_it_arrives(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """It is a row of the run's block or a turn of its own: never both, never neither."""

    def answer(body: Json) -> Script:
        tools = sum(one["role"] == "tool" for one in body["messages"][-2:])
        return Script(tokens=["done"]) if tools else Script(tool_calls=LOOK)

    model.default = answer
    async with SocketClient(owner) as client:
        session_id = (await client.say("0"))["sessionId"]
        for number in range(1, 25):
            await come(client, session_id, number % 6)
            await client.say(str(number), session_id, whenBusy="steer")
        await client.until(lambda: client.events(session_id)[-1]["event"]["type"] == "RUN_FINISHED")
        assert await gateway.runner.wait_idle(60)
        await beat(gateway)
        assert await gateway.runner.wait_idle(60)
        await verified(client, session_id)
    texts = [text for kind, text in await in_database(said, session_id) if kind == "user"]
    assert texts == [str(number) for number in range(25)]
    assert set(await in_database(states_of, session_id)) <= {"completed", "absorbed"}


async def test_it_makes_a_message_that_waits_steer_and_lets_it_be_removed(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        gate, first = await held_in_a_step(client, model)
        kept = await client.say("left", first["sessionId"])
        gone = await client.say("right", first["sessionId"], whenBusy="steer")
        await client.ok("queue.edit", turnId=kept["turnId"], content="left!", whenBusy="steer")
        await client.ok("queue.remove", turnId=gone["turnId"])
        gate.release()
        await client.finished(first["turnId"])
    assert messages(model, 1)[-2:] == [("tool", "There is no tool 'look'."), ("user", "left!")]
    assert await in_database(states_of, first["sessionId"]) == ["completed", "absorbed", "stopped"]


async def test_it_steers_the_next_run_of_a_turn_whose_process_died(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["I "], tool_calls=LOOK, gates={1: Gate()}), Script(tool_calls=LOOK))
    async with SocketClient(owner) as client:
        first = await client.say("first")
        await client.until(lambda: client.text(first["turnId"]))
        await client.say("left!", first["sessionId"], whenBusy="steer")
        await gateway.runner.aclose()
        gateway.runner.draining = True
        session = Session.objects.filter(pk=first["sessionId"])
        await in_database(session.update, lease_expires_at=None)
        await model.request(2)  # the other one's heartbeat finds the turn
        assert await other.runner.wait_idle(60)
    assert messages(model, 2)[-1] == ("user", "left!")
    assert await in_database(states_of, first["sessionId"]) == ["completed", "absorbed"]


async def test_it_pays_for_steering_only_when_somebody_steers(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    counts = {}
    async with SocketClient(owner) as client:
        for steers in (0, 1, 3):
            gate, first = await held_in_a_step(client, model)
            for number in range(steers):
                await client.say(f"left {number}", first["sessionId"], whenBusy="steer")
            with every_statement() as statements:
                gate.release()
                await client.finished(first["turnId"])
            rows = f"INSERT INTO {Message._meta.db_table}"
            steps = {one.transaction for one in statements.others if rows in one.sql}
            counts[steers] = sum(one.transaction == min(steps) for one in statements.others)
    assert counts[0] == 4, counts
    assert counts[1] == counts[3] <= counts[0] + 5, counts
