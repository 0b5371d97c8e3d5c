"""Two hundred clients that stop reading cost bounded memory, and are closed (case D4)."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from websockets import ConnectionClosed, Subprotocol
from websockets.asyncio.client import ClientConnection, connect

from gateway_app.config import GatewayConfig
from tests.fake_model_server import FakeModelServer, Script
from tests.gateway_app.serving.conftest import Served, Site

pytestmark = pytest.mark.chaos

CLIENTS: Final = 200
MOST_BYTES: Final = 1024 * 1024
"""What one of them may cost: its window, and what the network holds."""
PATIENCE_S: Final = 90
Json = dict[str, Any]


def memory_bytes(served: Served) -> int:
    status = Path(f"/proc/{served.process.pid}/status").read_text(encoding="utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) * 1024


async def ask(socket: ClientConnection, kind: str, **fields: Any) -> Json:
    await socket.send(json.dumps({"id": kind, "type": kind, **fields}))
    while True:
        frame: Json = json.loads(await socket.recv())
        if frame.get("re") == kind:
            assert frame["ok"], frame
            result: Json = frame["result"]
            return result


def open_socket(served: Served, token: str) -> connect:
    return connect(
        served.url.replace("http", "ws", 1) + "/ws/v1/", subprotocols=[Subprotocol("hermes.v1")],
        additional_headers={"Authorization": f"Bearer {token}"}, proxy=None, max_size=None,
        max_queue=1, ping_interval=None,
    )  # fmt: skip


async def close_code(socket: ClientConnection) -> int | None:
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None


async def read_answer(socket: ClientConnection) -> str:
    """What somebody who reads and acknowledges is shown of one turn."""
    shown = ""
    while True:
        frame = json.loads(await socket.recv())
        event = frame.get("event", {})
        if "event" in frame:
            acks = {frame["sessionId"]: frame["seq"]}
            await socket.send(json.dumps({"type": "ack", "acks": acks}))
        shown += event.get("delta", "") if event.get("type") == "TEXT_MESSAGE_CONTENT" else ""
        if event.get("type") == "RUN_FINISHED":
            return shown


async def test_it_bounds_what_silent_clients_cost_and_closes_them(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = [f"word{number} " * 20 for number in range(500)]
    with FakeModelServer() as model:
        model.default = Script(tokens=tokens, token_delay_s=0.03)
        served = site.start(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test").ready()
        served.watchdog.cancel()
        token = site.token()
        silent: list[ClientConnection] = []
        async with open_socket(served, token) as reader:
            await ask(reader, "hello", protocol="hermes.v1")
            made = await ask(reader, "session.create", clientMessageId="s")
            session_id = made["session"]["id"]
            await ask(reader, "session.subscribe", sessionId=session_id)
            for _ in range(CLIENTS):
                socket = await open_socket(served, token)
                await ask(socket, "hello", protocol="hermes.v1")
                await ask(socket, "session.subscribe", sessionId=session_id)
                silent.append(socket)
            before = memory_bytes(served)
            send = {"sessionId": session_id, "content": "Go on", "clientMessageId": "c"}
            await ask(reader, "message.send", **send)
            assert await read_answer(reader) == "".join(tokens)
            grown = memory_bytes(served) - before
            with capsys.disabled():
                print(f"\n{grown / CLIENTS / 1024:.0f} KiB a silent client")  # noqa: T201
            assert grown < CLIENTS * MOST_BYTES, grown
            await asyncio.sleep(GatewayConfig().lag_close_s + 5)
            async with asyncio.timeout(PATIENCE_S):
                codes = await asyncio.gather(*(close_code(socket) for socket in silent))
            assert set(codes) == {4013}
            await ask(reader, "ping")
        assert served.end() == 0
