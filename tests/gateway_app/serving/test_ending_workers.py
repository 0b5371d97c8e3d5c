"""Turn workers and groups that are told to end more than once, or without Redis."""

import os
import signal
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Served, Site, Tab
from tests.gateway_app.serving.test_workers import (
    configured,
    open_session,
    run_worker,
    send,
    shared,
)
from tests.wire import Wire

pytestmark = pytest.mark.redis

GIVEN_UP = "did not end by itself"


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


def ended_well(*ended: Served) -> None:
    for one in ended:
        assert one.rest() == 0, one.said
        assert GIVEN_UP not in "\n".join(one.said)
        assert not any("Traceback" in line for line in one.said), one.said


def test_it_ends_a_worker_that_is_told_again_in_the_midst_of_an_answer(
    site: Site, model: FakeModelServer
) -> None:
    """The last events go to Redis in the very moment in which everything is closed."""
    gate = Gate()
    model.script(Script(tokens=("one ", "two"), gates={1: gate}))
    env = shared(model, HERMES_TURNS="workers")
    served = site.start(**env).ready()
    worker = run_worker(site, **env)
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        send(tab, open_session(tab), "hello")
        tab.event("TEXT_MESSAGE_CONTENT")
        worker.process.send_signal(signal.SIGTERM)
        worker.read_until("Stopping")
        worker.process.send_signal(signal.SIGTERM)
        gate.release()
        worker.process.send_signal(signal.SIGINT)
        tab.event("RUN_FINISHED")
        worker.process.send_signal(signal.SIGTERM)
        ended_well(worker)
    assert served.end() == 0
    assert site.sql("SELECT state, runs FROM gateway_app_turn") == [("completed", 1)]


def test_it_hands_over_once_though_it_is_told_again_meanwhile(
    site: Site, model: FakeModelServer
) -> None:
    model.script(Script(tokens=("one ", "two"), gates={1: Gate()}))
    env = shared(model, HERMES_TURNS="workers")
    served = site.start(**env).ready()
    leaving = run_worker(site, **env | configured(drain_s=0.1, lease_s=3600))
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        session_id = open_session(tab)
        send(tab, session_id, "hello")
        tab.event("TEXT_MESSAGE_CONTENT")
        staying = run_worker(site, **env)
        leaving.process.send_signal(signal.SIGTERM)
        assert tab.event("RUN_ERROR")["metadata"]["hermes"]["retrying"] is True
        leaving.process.send_signal(signal.SIGTERM)
        tab.event("RUN_FINISHED")
    ended_well(leaving)
    for one in (staying, served):
        assert one.end() == 0
    assert site.sql("SELECT state, runs FROM gateway_app_turn") == [("completed", 2)]


@pytest.mark.parametrize("away", ["cut", "silence"])
def test_it_ends_a_worker_whose_redis_is_away(
    site: Site, model: FakeModelServer, away: str
) -> None:
    gate = Gate()
    model.script(Script(tokens=("one ", "two"), gates={1: gate}))
    env = shared(model, HERMES_TURNS="workers")
    served = site.start(**env).ready()
    url = urlsplit(os.environ["REDIS_URL"])
    with Wire(url.port or 6379) as wire:
        there = urlunsplit(url._replace(netloc=f"127.0.0.1:{wire.port}"))
        worker = run_worker(site, **env | {"REDIS_URL": there})
        with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
            send(tab, open_session(tab), "hello")
            tab.event("TEXT_MESSAGE_CONTENT")
            getattr(wire, away)()
            worker.process.send_signal(signal.SIGTERM)
            worker.read_until("Stopping")
            gate.release()
            tab.event("RUN_FINISHED")
        assert worker.rest() == 0
    assert GIVEN_UP not in "\n".join(worker.said)
    assert served.end() == 0
    assert site.sql("SELECT state, runs FROM gateway_app_turn") == [("completed", 1)]
