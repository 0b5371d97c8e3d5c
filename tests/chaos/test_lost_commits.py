"""The connection breaks off between a commit and its confirmation: nobody waits for a lease."""

import json
import os
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from django.db import connection
from websockets import Subprotocol
from websockets.asyncio.client import ClientConnection, connect

from tests.chaos.place import START_S, Place
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a file is not behind a network"),
]

LEASE_S: Final = 3600
"""Whoever waited for it would not see the end of the test."""
Json = dict[str, Any]


class Tab:
    """One socket in one conversation; keeps every frame."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.frames: list[Json] = []

    async def next(self) -> Json:
        frame: Json = json.loads(await self._socket.recv())
        self.frames.append(frame)
        return frame

    async def ask(self, name: str, kind: str, **fields: Any) -> Json:
        await self._socket.send(json.dumps({"id": name, "type": kind, **fields}))
        while (frame := await self.next()).get("re") != name:
            pass
        return frame

    async def open(self) -> str:
        await self.ask("h", "hello", protocol="hermes.v1")
        made = await self.ask("c", "session.create", clientMessageId="s")
        session_id: str = made["result"]["session"]["id"]
        await self.ask("w", "session.subscribe", sessionId=session_id)
        return session_id

    async def send(self, session_id: str, text: str) -> Json:
        """Sends until it is acknowledged, as every client does."""
        message = {"sessionId": session_id, "content": text, "clientMessageId": f"c-{text}"}
        while not (reply := await self.ask(f"m-{text}", "message.send", **message))["ok"]:
            assert reply["error"]["retryable"], reply
        result: Json = reply["result"]
        return result

    async def event(self, kind: str, turn_id: str) -> Json:
        def wanted(frame: Json) -> bool:
            return frame.get("turnId") == turn_id and frame["event"]["type"] == kind

        while not (found := next(filter(wanted, self.frames), None)):
            await self.next()
        return found


def tab_of(place: Place) -> connect:
    return connect(
        place.url.replace("http", "ws", 1) + "/ws/v1/", subprotocols=[Subprotocol("hermes.v1")],
        additional_headers={"Authorization": f"Bearer {place.token}"}, proxy=None, max_size=None,
        open_timeout=START_S, ping_interval=None,
    )  # fmt: skip


def place(model: FakeModelServer, folder: Path) -> Place:
    folder.joinpath("site").mkdir()
    return Place(
        postgres=os.environ["DATABASE_URL"], model_url=model.url, workers=1,
        folder=folder / "site", lease_s=LEASE_S,
    )  # fmt: skip


def runs(place: Place) -> list[tuple[str, int]]:
    with psycopg.connect(place.database_url) as database:
        found = database.execute("SELECT state, runs FROM gateway_app_turn ORDER BY accepted_seq")
        return [(state, number) for state, number in found]


async def test_it_runs_the_next_turn_though_no_one_heard_that_it_was_started(
    tmp_path: Path,
) -> None:
    gate = Gate()
    with FakeModelServer() as model:
        model.script(Script(tokens=["one ", "two"], gates={1: gate}))
        async with place(model, tmp_path) as there, tab_of(there) as socket:
            tab = Tab(socket)
            session_id = await tab.open()
            first = await tab.send(session_id, "hello")
            await tab.event("TEXT_MESSAGE_CONTENT", first["turnId"])
            second = await tab.send(session_id, "and what then?")
            there.network.lose_commit_with(b"and what then?")
            gate.release()
            await tab.event("RUN_FINISHED", first["turnId"])
            await tab.event("RUN_FINISHED", second["turnId"])
            assert there.network.lost.is_set()
            assert runs(there) == [("completed", 1), ("completed", 2)]
        assert there.exit_code == 0


async def test_it_runs_a_turn_though_no_one_heard_that_it_was_accepted(tmp_path: Path) -> None:
    with FakeModelServer() as model:
        async with place(model, tmp_path) as there, tab_of(there) as socket:
            tab = Tab(socket)
            session_id = await tab.open()
            there.network.lose_commit_with(b"is anybody there?")
            sent = await tab.send(session_id, "is anybody there?")
            await tab.event("RUN_FINISHED", sent["turnId"])
            assert there.network.lost.is_set()
            assert runs(there) == [("completed", 2)]
        assert there.exit_code == 0
