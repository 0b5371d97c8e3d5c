"""The example client of docs/websocket.md, run as a person would run it."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import websockets

from tests.chaos.place import free_port
from tests.docs.reading import ROOT, document
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import PATIENCE_S, Served, Site, Tab
from tests.wire import Wire

CLIENT = "docs/websocket_client.py"


def serve(site: Site, model: FakeModelServer) -> Served:
    return site.start(
        OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", HERMES_MODEL="openai:fake-1"
    ).ready()


def port_of(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


@asynccontextmanager
async def asking(token: str, question: str, port: int) -> AsyncIterator[Process]:
    """The client as a process of its own, ended after the block whatever happens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ROOT / CLIENT), question, f"ws://127.0.0.1:{port}/ws/v1/",
        env={"PATH": os.environ["PATH"], "HERMES_TOKEN": token, "PYTHONWARNINGS": "error"},
        stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def end_of(process: Process) -> tuple[str, str, int | None]:
    """(the rest of what it says, its complaints, its exit code)"""
    said, complaints = await process.communicate()
    return said.decode(), complaints.decode(), process.returncode


async def test_it_streams_an_answer(site: Site, model: FakeModelServer) -> None:
    served = serve(site, model)
    async with asking(site.token(), "What is a gateway?", port_of(served)) as client:
        assert await end_of(client) == ("Hello, world!\n", "", 0)
    assert model.requests[0].messages[-1] == {"role": "user", "content": "What is a gateway?"}


async def test_it_reads_what_came_before_the_socket_closed() -> None:
    """A server that drains sends the end of the answer and closes: no ack reaches it any more."""
    tries = 0

    async def answer_and_leave(server: websockets.ServerConnection) -> None:
        nonlocal tries
        tries += 1
        for result in ({}, {"sessionId": "s"}, {}):
            told = json.loads(await server.recv())
            again = {"ok": False, "error": {"message": "It came again."}}
            reply = {"ok": True, "result": result} if tries == 1 else again
            await server.send(json.dumps({"re": told["id"]} | reply))
        delta = {"type": "TEXT_MESSAGE_CONTENT", "delta": "x"}
        for seq in range(1, 101):
            event = delta if seq < 100 else {"type": "RUN_FINISHED"}
            await server.send(json.dumps({"sessionId": "s", "seq": seq, "event": event}))
        await server.close(4012)

    async with websockets.serve(
        answer_and_leave, "127.0.0.1", 0, subprotocols=[websockets.Subprotocol("hermes.v1")]
    ) as server:
        [listening] = server.sockets
        async with asking("hms_x", "Hello?", listening.getsockname()[1]) as client:
            assert await end_of(client) == ("x" * 99 + "\n", "", 0)
    assert tries == 1


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (["Hello?"], {}, "HERMES_TOKEN is not set."),
        ([], {"HERMES_TOKEN": "hms_x"}, "python websocket_client.py QUESTION [URL]"),
    ],
)
def test_it_says_what_it_lacks(arguments: list[str], env: dict[str, str], said: str) -> None:
    client = [sys.executable, str(ROOT / CLIENT), *arguments]
    ended = subprocess.run(client, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.strip().endswith(said)
    assert "Traceback" not in ended.stderr


async def test_it_says_why_there_is_no_answer(site: Site, model: FakeModelServer) -> None:
    model.default = Script(status=401)
    served = serve(site, model)
    async with asking(site.token(), "Hello?", port_of(served)) as client:
        said, complaint, code = await end_of(client)
    assert (said, code) == ("", 1)
    assert "OPENAI_API_KEY" in complaint
    assert "Traceback" not in complaint


async def test_it_ends_where_no_server_is() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with asking("hms_none", "Hello?", taken.getsockname()[1]) as client:
            said, complaint, code = await end_of(client)
    assert (said, code) == ("", 1)
    assert complaint.startswith("Cannot connect to ws://127.0.0.1:")
    assert len(complaint.splitlines()) == 1


async def test_it_ends_if_the_token_is_not_known(site: Site, model: FakeModelServer) -> None:
    served = serve(site, model)
    async with asking("hms_wrong", "Hello?", port_of(served)) as client:
        said, complaint, code = await end_of(client)
    assert (said, code) == ("", 1)
    assert "Traceback" not in complaint
    assert "HERMES_TOKEN is wrong" in complaint
    assert "manage.py apitoken create" in complaint


async def test_it_goes_on_where_a_lost_connection_left_off(
    site: Site, model: FakeModelServer
) -> None:
    gates = [Gate(), Gate()]
    words = ["Once ", "upon ", "a ", "time."]
    model.script(Script(tokens=words, gates={1: gates[0], 3: gates[1]}))
    served = serve(site, model)
    with Wire(port_of(served)) as wire:
        async with asking(site.token(), "Tell me.", wire.port) as client:
            assert client.stdout is not None
            assert await client.stdout.readexactly(len(words[0])) == b"Once "
            wire.drop()
            gates[0].release()
            await asyncio.to_thread(wire.wait_taken, 2)
            assert await client.stdout.readexactly(len("upon a ")) == b"upon a "
            wire.drop()
            gates[1].release()
            said, complaints, code = await end_of(client)
            assert (said, code) == ("time.\n", 0)
            assert complaints.count("trying again") == 2
            assert wire.taken == 3
    assert len(model.requests) == 1


async def test_it_says_that_the_answer_is_written_anew_after_a_crash(
    site: Site, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Once ", "upon"], gates={1: Gate()}), Script(tokens=["A time."]))
    port = free_port()
    here = ["--port", str(port)]
    env = {"OPENAI_BASE_URL": model.url, "HERMES_MODEL": "openai:fake-1"}
    served = site.start(*here, **env).ready()
    async with asking(site.token(), "Tell me.", port) as client:
        assert client.stdout is not None
        assert await client.stdout.readexactly(len("Once ")) == b"Once "
        await asyncio.to_thread(served.end, signal.SIGKILL)
        await asyncio.to_thread(site.start(*here, **env).ready)
        said, complaints, code = await end_of(client)
        assert (said, code) == ("\n[Interrupted; once more]\nA time.\n", 0)
        assert "Traceback" not in complaints


async def test_it_shows_how_things_stand_when_the_log_is_gone(
    site: Site, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=["Once ", "upon a time."], gates={1: gate}))
    served, token = serve(site, model), site.token()
    with Wire(port_of(served)) as wire:
        async with asking(token, "Tell me.", wire.port) as client:
            assert client.stdout is not None
            assert await client.stdout.readexactly(len("Once ")) == b"Once "
            wire.silence()
            wire.drop()
            await asyncio.to_thread(wire.wait_taken, 2)
            with Tab(served, Authorization=f"Bearer {token}") as tab:
                tab.ask("hello", protocol="hermes.v1")
                [session] = tab.ask("session.list")["result"]["sessions"]
                tab.ask("session.subscribe", sessionId=session["id"], after=0)
                gate.release()
                tab.event("RUN_FINISHED")
            site.sql("DELETE FROM gateway_app_event")
            wire.mend()
            said, complaints, code = await end_of(client)
            assert (said, code) == ("\n[From the start] Once upon a time.\n\n", 0)
            assert "Traceback" not in complaints


def test_it_is_in_the_page_as_it_is() -> None:
    source = document(CLIENT)
    assert f"```python\n{source}```" in document("docs/websocket.md")
    assert len(source.splitlines()) <= 68
