"""A thousand people who only look: all stay connected, cost little, and slow nobody down."""

import asyncio
import json
import time
from typing import Any, Final

import pytest
from websockets import Subprotocol
from websockets.asyncio.client import ClientConnection, connect

from gateway_app.serving.open_files import raise_limit
from tests.chaos.test_silent_clients import ask, memory_bytes, read_answer
from tests.fake_model_server import FakeModelServer, Script
from tests.gateway_app.serving.conftest import Served, Site

pytestmark = pytest.mark.chaos

SOCKETS: Final = 1000
AT_ONCE: Final = 50
PINGS: Final = 3
PING_S: Final = 3
MOST_BYTES: Final = 100 * 1024
"""What one of them may cost, the growth of everything else included."""
PATIENCE_S: Final = 300


async def enter(served: Served, token: str) -> ClientConnection:
    socket = await connect(
        served.url.replace("http", "ws", 1) + "/ws/v1/", subprotocols=[Subprotocol("hermes.v1")],
        additional_headers={"Authorization": f"Bearer {token}"}, proxy=None, max_size=None,
        max_queue=None, ping_interval=None, open_timeout=PATIENCE_S,
    )  # fmt: skip
    await ask(socket, "hello", protocol="hermes.v1")
    return socket


async def hear(socket: ClientConnection) -> None:
    """Returns when the server has asked often enough whether somebody is there."""
    heard = 0
    while heard < PINGS:
        frame: dict[str, Any] = json.loads(await socket.recv())
        heard += frame.get("type") == "ping"


async def test_it_keeps_a_thousand_idle_sockets(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    if (files := raise_limit()) < SOCKETS + 200:
        pytest.fail(f"{files} files may be open here; run `ulimit -n {2 * SOCKETS}` before")
    config = {
        "heartbeat_ping_s": PING_S, "user_sockets": SOCKETS + 10, "address_sockets": SOCKETS + 10,
    }  # fmt: skip
    tokens = [f"word{number} " for number in range(20)]
    with FakeModelServer() as model:
        model.default = Script(tokens=tokens)
        served = site.start(
            OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test",
            DJANGO_SETTINGS_MODULE="tests.configured", HERMES_TEST_CONFIG=json.dumps(config),
        ).ready()  # fmt: skip
        served.allow(PATIENCE_S)
        token = site.token()
        async with asyncio.timeout(PATIENCE_S):
            reader = await enter(served, token)
            made = await ask(reader, "session.create", clientMessageId="s")
            session_id = made["session"]["id"]
            await ask(reader, "session.subscribe", sessionId=session_id)

            async def turn(name: str) -> float:
                began = time.monotonic()
                send = {"sessionId": session_id, "content": name, "clientMessageId": name}
                await ask(reader, "message.send", **send)
                assert await read_answer(reader) == "".join(tokens)
                return (time.monotonic() - began) * 1000

            alone_ms = [await turn(f"alone {number}") for number in range(5)]
            before = memory_bytes(served)
            idle: list[ClientConnection] = []
            while len(idle) < SOCKETS:
                idle += await asyncio.gather(*(enter(served, token) for _ in range(AT_ONCE)))
            kept = (memory_bytes(served) - before) / SOCKETS
            await asyncio.gather(*(hear(socket) for socket in idle))
            among_ms = [await turn(f"among {number}") for number in range(5)]
            await asyncio.gather(*(ask(socket, "ping") for socket in idle))
            grown = (memory_bytes(served) - before) / SOCKETS
            await asyncio.gather(*(socket.close() for socket in [reader, *idle]))
        assert served.end() == 0
    assert "Traceback" not in "\n".join(served.said)
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{SOCKETS} idle sockets: {kept / 1024:.1f} KiB each, {grown / 1024:.1f} after"
            f" {PINGS} pings; a turn {sorted(among_ms)[2]:.0f} ms, alone {sorted(alone_ms)[2]:.0f}"
        )
    assert grown < MOST_BYTES, grown
