"""The port of a turn worker: health and metrics, and nothing else."""

import signal
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Served, Site, Tab
from tests.gateway_app.serving.test_group_metrics import ENDED, scraped
from tests.gateway_app.serving.test_workers import open_session, send, shared

pytestmark = pytest.mark.redis


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


def run_worker(site: Site, **env: str) -> Served:
    """A turn worker with a port that is free."""
    command = ("manage.py", "runworker", "turns", "--port", "0")
    worker = site.keep(Served(site.data_dir, *command, **env))
    worker.url = worker.read_until("Health and metrics: ").split()[-1]
    worker.read_until("Turns run here.")
    return worker


def test_it_tells_what_ended_in_a_worker_and_whether_it_is_well(
    site: Site, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(), Script(tokens=("one ", "two"), gates={1: gate}))
    env = shared(model, HERMES_TURNS="workers")
    served = site.start(**env).ready()
    worker = run_worker(site, **env)
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        session_id = open_session(tab)
        send(tab, session_id, "hello")
        tab.event("RUN_FINISHED")
        assert scraped(worker)[ENDED] == 1
        assert ENDED not in scraped(served)
        assert worker.get("/healthz").json() == {"status": "ok"}
        assert worker.get("/readyz").json()["ready"] is True
        assert worker.get("/metrics", headers={"Via": "1.1 proxy"}).status_code == 401
        assert [worker.get(path).status_code for path in ("/", "/api/v1/me", "/login/x/")] == [
            404
        ] * 3
        with pytest.raises(InvalidStatus), Tab(worker):
            pass
        send(tab, session_id, "again")
        tab.event("TEXT_MESSAGE_CONTENT")
        worker.process.send_signal(signal.SIGTERM)
        worker.read_until("Stopping")
        assert worker.get("/readyz").json()["draining"] is True
        gate.release()
        tab.event("RUN_FINISHED")
    assert worker.rest() == 0
    assert not any("Traceback" in line for line in worker.said), worker.said
    assert served.end() == 0


def test_it_says_that_its_port_is_taken(site: Site, model: FakeModelServer) -> None:
    env = shared(model)
    served = site.start(**env).ready()
    port = served.url.rpartition(":")[2]
    done = site.manage("runworker", "turns", "--port", port, **env)
    assert done.returncode == 1
    assert f"127.0.0.1:{port} cannot be served" in done.stdout
    assert served.end() == 0
