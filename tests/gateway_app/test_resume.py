"""A client that comes back misses nothing and sees nothing twice, wherever it was cut off."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from tests.ag_ui_verifier import Json, verify_frames
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.session_log import fold
from tests.socket_client import SocketClient
from tests.viewer import Viewer

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = [f"word{number} " for number in range(8)]


def gated() -> tuple[Script, list[Gate]]:
    """An answer with reasoning that gives each of its pieces away only when told."""
    gates = [Gate() for _ in range(2 + len(WORDS))]
    script = Script(reasoning=["Well, ", "so."], tokens=WORDS, gates=dict(enumerate(gates)))
    return script, gates


async def give(client: SocketClient, gates: Sequence[Gate]) -> None:
    """The model gives the pieces away, each once the client has seen the one before."""
    for gate in gates:
        seen = len(client.events())
        gate.release()
        await client.until(lambda seen=seen: len(client.events()) > seen)


class CutOff:
    """A client that is cut off after every `k` event frames and comes back for the rest."""

    def __init__(self, owner: User, session_id: str, k: int) -> None:
        self.owner, self.session_id, self.k = owner, session_id, k
        self.frames: list[Json] = []
        self.visits = 0
        self.arrived = asyncio.Condition()

    @property
    def over(self) -> bool:
        last = self.frames[-1]["event"]["type"] if self.frames else ""
        return last in {"RUN_FINISHED", "RUN_ERROR"}

    async def run(self) -> None:
        """Returns after the terminal event; `frames` is what arrived on all its visits."""
        while not self.over:
            after = self.frames[-1]["seq"] if self.frames else 0
            async with SocketClient(self.owner) as client:
                self.visits += 1
                reply = await client.ok("session.subscribe", sessionId=self.session_id, after=after)
                assert reply == {"mode": "replay", "from": after}
                await self._stay(client)

    async def _stay(self, client: SocketClient) -> None:
        for number in range(self.k):
            await client.until(lambda number=number: len(client.events()) > number)
            async with self.arrived:
                self.frames.append(client.events()[number])
                self.arrived.notify_all()
            if self.over:
                return

    async def has(self, count: int) -> None:
        async with asyncio.timeout(60), self.arrived:
            await self.arrived.wait_for(lambda: len(self.frames) >= count)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
async def test_it_resumes_a_live_run_with_the_very_same_frames(
    gateway: GatewayHost, model: FakeModelServer, owner: User, k: int
) -> None:
    script, gates = gated()
    model.script(script)
    async with SocketClient(owner) as witness:
        sent = await witness.say("tell me")
        cut = CutOff(owner, sent["sessionId"], k)
        running = asyncio.create_task(cut.run())
        for gate in gates:
            await give(witness, [gate])
            await cut.has(len(witness.events()))
        await witness.finished(sent["turnId"])
        await running
    assert cut.frames == witness.events()
    assert cut.visits >= len(cut.frames) // k
    verify_frames(cut.frames)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
async def test_it_resumes_a_run_that_went_on_without_the_client(
    gateway: GatewayHost, model: FakeModelServer, owner: User, k: int
) -> None:
    script, gates = gated()
    model.script(script)
    async with SocketClient(owner) as witness:
        sent = await witness.say("tell me")
        await give(witness, gates)
        await witness.finished(sent["turnId"])
    cut = CutOff(owner, sent["sessionId"], k)
    await cut.run()
    assert joined(cut.frames) == joined(witness.events())
    assert [frame["prev"] for frame in cut.frames[1:]] == [one["seq"] for one in cut.frames[:-1]]
    assert cut.frames[0]["prev"] == 0
    verify_frames(cut.frames)


def joined(frames: Sequence[Json]) -> list[Json]:
    """The events, with neighbouring deltas of one message as one: a replay may join them."""
    events: list[Json] = []
    for frame in frames:
        event = dict(frame["event"])
        last = events[-1] if events else {}
        if "delta" in event and (last.get("type"), last.get("messageId")) == (
            event["type"],
            event["messageId"],
        ):
            last["delta"] += event["delta"]
        else:
            events.append(event)
    return events


async def conversation(client: SocketClient, model: FakeModelServer) -> str:
    """Three turns, one of them with a tool, one that had to wait; the session's id."""
    script, gates = gated()
    model.script(
        script,
        Script(tokens=["Let me look. "], tool_calls=[ToolCall("a1", "look")]),
        Script(tokens=["Nothing ", "there."]),
        Script(tokens=["Yes."]),
    )
    sent = await client.say("tell me")
    later = [await client.say(text, sent["sessionId"]) for text in ("what is above?", "sure?")]
    await give(client, gates)
    await client.finished(later[-1]["turnId"])
    await fold(sent["sessionId"], *(turn["turnId"] for turn in (sent, *later)))
    session_id: str = sent["sessionId"]
    return session_id


async def test_it_reaches_the_same_state_from_every_seq_of_a_folded_log(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness:
        session_id = await conversation(witness, model)
        frames = witness.events()
        last = frames[-1]["seq"]
        await witness.ok("session.subscribe", sessionId=session_id)
        fresh = Viewer().take(await snapshots(witness)).state
    assert Viewer().take(frames).state == fresh
    assert [row["kind"] for row in fresh["messages"]] == [
        "user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    modes = []
    async with SocketClient(owner) as client:
        for seq in range(last + 1):
            viewer = Viewer().take(frame for frame in frames if frame["seq"] <= seq)
            start = len(client.frames)
            reply = await client.ok("session.subscribe", sessionId=session_id, after=seq)
            modes.append(reply["mode"])
            await client.until(partial(reached, client.frames, start, last, seq))
            assert viewer.take(client.frames[start:]).state == fresh, seq
    assert modes[0] == modes[last] == "replay"
    assert modes.count("snapshot") >= len(WORDS) - 2


async def snapshots(client: SocketClient) -> list[Json]:
    """The snapshot frames, once there is one."""
    found: list[Json] = await client.until(
        lambda: [frame for frame in client.frames if frame.get("type") == "snapshot"]
    )
    return found


def reached(frames: Sequence[Json], start: int, last: int, seq: int) -> bool:
    """Whether the frames from `start` on lead to the end of the log."""
    return seq == last or any(frame.get("seq") == last for frame in frames[start:])


async def test_it_gives_a_snapshot_that_the_running_answer_goes_on_from(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    script, gates = gated()
    model.script(script)
    async with SocketClient(owner) as witness, SocketClient(owner) as late:
        sent = await witness.say("tell me")
        await give(witness, gates[:5])
        assert await late.ok("session.subscribe", sessionId=sent["sessionId"]) == {
            "mode": "snapshot"
        }
        [snapshot] = await snapshots(late)
        assert snapshot["seq"] == witness.events()[-1]["seq"]
        assert snapshot["running"]["turnId"] == sent["turnId"]
        began = datetime.fromisoformat(snapshot["running"]["startedAt"])
        assert timedelta() <= datetime.now(UTC) - began < timedelta(minutes=1)
        verify_frames(
            [{"turnId": sent["turnId"], "event": one} for one in snapshot["running"]["events"]],
            over=False,
        )
        assert Viewer().take([snapshot]).state == Viewer().take(witness.events()).state
        for gate in gates[5:]:
            gate.release()
        await late.finished(sent["turnId"])
        await witness.finished(sent["turnId"])
        assert Viewer().take(late.frames).state == Viewer().take(witness.events()).state


async def test_it_gives_a_snapshot_where_the_log_does_not_reach(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        last = client.events()[-1]["seq"]
        for after in (last + 1, 2**62):
            reply = await client.ok("session.subscribe", sessionId=sent["sessionId"], after=after)
            assert reply == {"mode": "snapshot"}
        made = await client.ok("session.create", clientMessageId="empty")
        empty = made["session"]["id"]
        reply = await client.ok("session.subscribe", sessionId=empty, after=0)
        assert reply == {"mode": "replay", "from": 0}


async def test_it_sends_nothing_of_a_session_that_is_watched_no_longer(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as gone:
        sent = await witness.say("hello")
        await gone.ok("session.subscribe", sessionId=sent["sessionId"])
        await gone.finished(sent["turnId"])
        await gone.ok("session.unsubscribe", sessionId=sent["sessionId"])
        seen = len(gone.frames)
        again = await witness.say("again", sent["sessionId"])
        await witness.finished(again["turnId"])
        await gone.ok("ping")
        assert [one for one in gone.frames[seen:] if "event" in one] == []
