"""PostgreSQL goes away amid an answer and comes back: a real server waits for it."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.db import connection

from tests.docs.cutting_proxy import CuttingProxy
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Site, Tab

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="the database is a server there"
)


class Line:
    """The way to a server, in a thread: `cut()` it, `mend()` it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxy: CuttingProxy) -> None:
        self._loop, self._proxy = loop, proxy
        self.port = proxy.port

    def cut(self) -> None:
        """Every connection breaks off, and new ones get no answer."""

        async def cut() -> None:
            self._proxy.open.clear()
            self._proxy.cut()

        asyncio.run_coroutine_threadsafe(cut(), self._loop).result(10)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._proxy.open.set)


@contextmanager
def line_to(port: int) -> Iterator[Line]:
    ready, ended = threading.Event(), asyncio.Event()
    lines: list[Line] = []

    async def serve() -> None:
        async with CuttingProxy(port) as proxy:
            lines.append(Line(asyncio.get_running_loop(), proxy))
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield lines[0]
    finally:
        lines[0].mend()
        lines[0]._loop.call_soon_threadsafe(ended.set)
        thread.join(10)


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of an empty database of this test's own."""
    url = urlsplit(os.environ["DATABASE_URL"])
    name = f"hermes_away_{os.getpid()}"
    with psycopg.connect(urlunsplit(url._replace(path="/postgres")), autocommit=True) as postgres:
        postgres.execute(f"CREATE DATABASE {name}")
        yield urlunsplit(url._replace(path=f"/{name}"))
        postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_it_waits_for_postgres_and_loses_nothing(empty_site: Site, server: str) -> None:
    gate = Gate()
    url = urlsplit(server)
    with FakeModelServer() as model, line_to(url.port or 5432) as line:
        model.script(Script(tokens=["one ", "two"], gates={1: gate}))
        netloc = f"{url.username}@127.0.0.1:{line.port}"
        env = {
            "DATABASE_URL": urlunsplit(url._replace(netloc=netloc)),
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "k",
            "HERMES_MODEL": "openai:fake-1",
        }
        served = empty_site.start("--migrate", **env).ready()
        done = empty_site.manage("apitoken", "create", "admin", **env)
        with Tab(served, Authorization=f"Bearer {done.stdout.splitlines()[-1]}") as tab:
            tab.ask("hello", protocol="hermes.v1")
            made = tab.ask("session.create", clientMessageId="new")["result"]["session"]["id"]
            tab.ask("session.subscribe", sessionId=made)
            tab.ask("message.send", sessionId=made, clientMessageId="a", content="hello")
            tab.event("TEXT_MESSAGE_CONTENT")
            line.cut()
            gate.release()
            tab.until(lambda frame: frame.get("type") == "storage" and not frame["storing"])
            assert served.get("/healthz").status_code == 200
            line.mend()
            tab.event("RUN_FINISHED")
            for _ in range(20):  # one more connection may turn out to be broken: it is sent again
                more = {"sessionId": made, "clientMessageId": "b", "content": "more"}
                again = tab.ask("message.send", **more)
                if again["ok"]:
                    break
                assert again["error"]["retryable"], again
            assert again["ok"], again
            tab.event("RUN_FINISHED")
        assert served.end() == 0
    with psycopg.connect(server) as postgres:
        found = postgres.execute(
            "SELECT kind, parts FROM sessions_app_message WHERE kind <> 'session_meta'"
            " ORDER BY position"
        ).fetchall()
    assert [kind for kind, _ in found] == ["user", "assistant", "user", "assistant"]
    assert "one two" in found[1][1]
