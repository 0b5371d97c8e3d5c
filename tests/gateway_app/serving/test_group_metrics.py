"""`/metrics` of a group of workers is about all of them, whichever answers."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import httpx2
import pytest

from tests.fake_model_server import FakeModelServer
from tests.gateway_app.serving.conftest import PATIENCE_S, Served, Site, Tab
from tests.gateway_app.serving.test_workers import open_session, send, shared, until, workers_of

pytestmark = pytest.mark.redis

ENDED = 'hermes_turns_total{code="",state="completed"}'


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


def scraped(served: Served) -> dict[str, float]:
    """Every sample by name and labels, from whichever worker took this connection."""
    text = served.get("/metrics").text
    lines = re.findall(r"^([a-z_]+(?:\{.*?\})?) (\S+)$", text, re.MULTILINE)
    assert len(dict(lines)) == len(lines), "no series stands there twice"
    return {name: float(value) for name, value in lines}


def told(served: Served, name: str, value: float) -> bool:
    """Whether any ten scrapes in a row say so: the kernel deals them out."""
    try:
        return all(scraped(served).get(name) == value for _ in range(10))
    except httpx2.TransportError:  # a worker died, and the next one does not listen yet
        return False


def test_it_tells_of_all_workers_also_of_what_the_dead_counted(
    site: Site, model: FakeModelServer
) -> None:
    served = site.start("--workers", "2", **shared(model)).ready()
    served.allow(5 * PATIENCE_S)
    bearer = f"Bearer {site.token()}"
    with ExitStack() as tabs:
        for number in range(8):
            tab = tabs.enter_context(Tab(served, Authorization=bearer))
            tab.ask("hello", protocol="hermes.v1")
            made = tab.ask("session.create", clientMessageId=f"s{number}")["result"]["session"]
            tab.ask("session.subscribe", sessionId=made["id"])
            tab.ask(
                "message.send", sessionId=made["id"], content="hello", clientMessageId=f"c{number}"
            )
            tab.event("RUN_FINISHED")
        until(lambda: told(served, "hermes_websockets", 8))
        until(lambda: told(served, ENDED, 8))
        until(lambda: told(served, "hermes_agent_cache_agents", 8))
        dead = workers_of(served)
        for pid in dead:
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: pid not in (now := workers_of(served)) and len(now) == 2)
    until(lambda: told(served, "hermes_websockets", 0))
    until(lambda: told(served, ENDED, 8))
    until(lambda: told(served, "hermes_agent_cache_agents", 0))
    with Tab(served, Authorization=bearer) as tab:
        send(tab, open_session(tab), "once more")
        tab.event("RUN_FINISHED")
        until(lambda: told(served, ENDED, 9))
    assert served.end() == 0
