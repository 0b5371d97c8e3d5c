"""A client that does not read costs nothing: no memory, no speed, no turn."""

import asyncio
import json
from dataclasses import replace
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Event, Turn
from sessions_app.models import Session
from tests.ag_ui_verifier import Json, verify_frames
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.session_log import fold
from tests.socket_client import SocketClient
from tests.viewer import Viewer

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 8
WORDS = [f"word{number} " for number in range(20)]


@pytest.fixture
def tunables() -> dict[str, float]:
    """What a test turns beside the window; it parametrizes them."""
    return {}


@pytest.fixture
def config(config: GatewayConfig, tunables: dict[str, float]) -> GatewayConfig:
    return replace(config, **{"window_frames": WINDOW, **tunables})  # type: ignore[arg-type]  # any


async def watch(lazy: SocketClient, session_id: str) -> None:
    """The client subscribes, and reads what comes without ever saying so."""
    lazy.acknowledging = False
    await lazy.ok("session.subscribe", sessionId=session_id)


async def stream(
    witness: SocketClient, lazy: SocketClient, model: FakeModelServer
) -> tuple[str, str]:
    """A whole turn, a frame for each word, before the eyes of both; (session, turn)."""
    gates = [Gate() for _ in WORDS]
    model.script(Script(tokens=WORDS, gates=dict(enumerate(gates))))
    made = await witness.ok("session.create", clientMessageId="new")
    session_id: str = made["session"]["id"]
    await witness.ok("session.subscribe", sessionId=session_id)
    await watch(lazy, session_id)
    sent = await witness.say("tell me", session_id)
    for gate in gates:
        seen = len(witness.events())
        gate.release()
        await witness.until(lambda seen=seen: len(witness.events()) > seen)
    await witness.finished(sent["turnId"])
    return session_id, sent["turnId"]


def snapshots(client: SocketClient) -> list[Json]:
    return [frame for frame in client.frames if frame.get("type") == "snapshot"]


async def test_it_sends_no_more_than_the_window_and_the_turn_goes_on(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as lazy:
        _, turn_id = await stream(witness, lazy, model)
        assert witness.text(turn_id) == "".join(WORDS)
        await lazy.ok("ping")
        assert len(lazy.events()) == WINDOW
        assert await sync_to_async(Turn.objects.get)(pk=UUID(turn_id), state="completed")


@pytest.mark.parametrize("tunables", [{"lag_close_s": 0.0}])
async def test_it_closes_who_lags_for_too_long(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as lazy:
        session_id, turn_id = await stream(witness, lazy, model)
        await lazy.until(lambda: lazy.closed)
        assert lazy.closed == 4013
        assert len(lazy.events()) <= WINDOW
        assert witness.closed is None
    async with SocketClient(owner) as again:
        last = lazy.events()[-1]["seq"]
        await again.ok("session.subscribe", sessionId=session_id, after=last)
        await again.finished(turn_id)
    assert lazy.text(turn_id) + again.text(turn_id) == "".join(WORDS)


@pytest.mark.parametrize("tunables", [{"window_frames": 10_000, "window_bytes": 1200}])
async def test_it_counts_bytes_as_well_as_frames(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as lazy:
        await stream(witness, lazy, model)
        await lazy.ok("ping")
        sizes = [len(json.dumps(frame, separators=(",", ":"))) for frame in lazy.events()]
        assert sum(sizes[:-1]) < 1200 + sizes[-1]
        assert len(sizes) < len(witness.events())


async def test_it_gives_the_rest_in_one_piece_once_a_laggard_acknowledges(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as lazy:
        session_id, turn_id = await stream(witness, lazy, model)
        lazy.acknowledging = True
        await acknowledge(lazy, session_id)
        await lazy.finished(turn_id)
        assert lazy.text(turn_id) == "".join(WORDS)
        assert len(lazy.events()) < len(witness.events())
        assert Viewer().take(lazy.events()).state == Viewer().take(witness.events()).state
        verify_frames(lazy.events())


async def acknowledge(lazy: SocketClient, session_id: str) -> None:
    await lazy.send({"type": "ack", "acks": {session_id: lazy.events()[-1]["seq"]}})


async def test_it_starts_a_laggard_anew_whose_place_in_the_log_was_folded(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as lazy:
        session_id, turn_id = await stream(witness, lazy, model)
        assert await fold(session_id, turn_id) > 0
        lazy.acknowledging = True
        await acknowledge(lazy, session_id)
        await lazy.until(lambda: len(snapshots(lazy)) == 2)
        assert snapshots(lazy)[1]["seq"] == witness.events()[-1]["seq"]
        again = await witness.say("and then?", session_id)
        await witness.finished(again["turnId"])
        await lazy.finished(again["turnId"])
        assert Viewer().take(lazy.frames).state == Viewer().take(witness.frames).state


async def test_it_starts_a_laggard_anew_whose_place_in_the_log_was_dropped(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as lazy:
        session_id, _ = await stream(witness, lazy, model)
        await sync_to_async(Event.objects.filter(session_id=UUID(session_id)).delete)()
        lazy.acknowledging = True
        await acknowledge(lazy, session_id)
        await lazy.until(lambda: len(snapshots(lazy)) == 2)
        assert Viewer().take(lazy.frames).state == Viewer().take(witness.frames).state


async def test_it_forgets_what_is_owed_when_a_session_is_watched_no_longer(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as witness, SocketClient(owner) as lazy:
        session_id, _ = await stream(witness, lazy, model)
        assert len(lazy.events()) == WINDOW
        await lazy.ok("session.unsubscribe", sessionId=session_id)
        await watch(lazy, session_id)
        again = await witness.say("and then?", session_id)
        await lazy.until(lambda: lazy.text(again["turnId"]))


class Deaf(SocketClient):
    """Takes nothing from its connection until `hears` is set."""

    hears: asyncio.Event

    async def _receive(self, message: Json) -> None:
        await self.hears.wait()
        await super()._receive(message)


async def test_it_works_on_one_command_only_for_a_client_that_does_not_read(
    gateway: GatewayHost, owner: User
) -> None:
    deaf = Deaf(owner)
    deaf.hears = asyncio.Event()
    deaf.hears.set()
    async with deaf, SocketClient(owner) as witness:
        deaf.hears.clear()
        for name in ("a", "b", "c"):
            await deaf.send({"id": name, "type": "session.create", "clientMessageId": name})
        for number in range(8):
            await witness.ok("session.create", clientMessageId=f"witness-{number}")
        made = Session.objects.filter(create_id__in=["a", "b", "c"])
        assert await sync_to_async(made.count)() == 1
        deaf.hears.set()
        await deaf.until(lambda: {"a", "b", "c"} <= set(deaf.replies))
        assert await sync_to_async(made.count)() == 3


@pytest.mark.parametrize("tunables", [{"window_bytes": 4096}])
async def test_it_closes_who_pings_and_does_not_read(gateway: GatewayHost, owner: User) -> None:
    deaf = Deaf(owner)
    deaf.hears = asyncio.Event()
    deaf.hears.set()
    async with deaf:
        await deaf.ok("ping", t="a" * 10_000)
        deaf.hears.clear()
        for _ in range(8):
            await deaf.send({"id": "p", "type": "ping", "t": "a" * 1000})
        deaf.hears.set()
        await deaf.until(lambda: deaf.closed)
        assert deaf.closed == 4013
