"""Several processes over Redis: workers on one port, and processes that only run turns."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from websockets import WebSocketException

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import PATIENCE_S, Served, Site, Tab
from tests.gateway_app.serving.test_serve import refused

pytestmark = pytest.mark.redis

DEAF = {"heartbeat_s": 3600, "poll_s": 3600, "lease_s": 3600}
"""Nothing comes from time to time: what happens, a wake-up brought."""


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


def shared(model: FakeModelServer, **more: str) -> dict[str, str]:
    return {
        "REDIS_URL": os.environ["REDIS_URL"],
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "sk-test",
        **more,
    }


def configured(**tunables: float) -> dict[str, str]:
    """The environment of a process whose gateway has these tunables."""
    return {
        "DJANGO_SETTINGS_MODULE": "tests.configured",
        "HERMES_TEST_CONFIG": json.dumps(tunables),
    }


def workers_of(served: Served) -> list[int]:
    """The pids of the group's workers."""
    listed = Path(f"/proc/{served.process.pid}/task").glob("*/children")
    return sorted(int(pid) for children in listed for pid in children.read_text().split())


def until(condition: Any) -> Any:
    """Asks again and again: what other processes do tells nobody here."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def open_session(tab: Tab) -> str:
    tab.ask("hello", protocol="hermes.v1")
    made: str = tab.ask("session.create", clientMessageId="s")["result"]["session"]["id"]
    tab.ask("session.subscribe", sessionId=made)
    return made


def send(tab: Tab, session_id: str, text: str) -> dict[str, Any]:
    reply = tab.ask("message.send", sessionId=session_id, content=text, clientMessageId=f"c-{text}")
    result: dict[str, Any] = reply["result"]
    return result


def test_it_serves_one_port_from_workers_and_replaces_a_dead_one(
    site: Site, model: FakeModelServer
) -> None:
    served = site.start("--workers", "3", **shared(model)).ready()
    first = until(lambda: (found := workers_of(served)) and len(found) == 3 and found)
    os.kill(first[0], signal.SIGKILL)
    second = until(lambda: len(set(workers_of(served)) - {first[0]}) == 3 and workers_of(served))
    assert set(first[1:]) < set(second)
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        session_id = open_session(tab)
        send(tab, session_id, "hello")
        tab.event("RUN_FINISHED")
    assert served.end() == 0
    links = [line for line in served.said if "/login/" in line]
    assert len(links) == 1
    assert not any("Traceback" in line for line in served.said), served.said
    assert not [pid for pid in second if Path(f"/proc/{pid}").exists()]


def test_it_shares_its_port_with_no_other_group(site: Site, model: FakeModelServer) -> None:
    served = site.start("--workers", "2", **shared(model)).ready()
    port = served.url.rpartition(":")[2]
    done = site.manage("serve", "--workers", "2", "--port", port, **shared(model))
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stdout
    assert served.end() == 0


def test_it_says_once_why_no_worker_can_serve(site: Site, model: FakeModelServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused(site, "--workers", "2", "--port", port, **shared(model))
    assert f"127.0.0.1:{port} cannot be served" in said


def test_it_ends_its_workers_however_it_ends(site: Site, model: FakeModelServer) -> None:
    served = site.start("--workers", "2", **shared(model)).ready()
    pids = until(lambda: (found := workers_of(served)) and len(found) == 2 and found)
    served.process.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_it_drains_a_group_that_is_told_twice(site: Site, model: FakeModelServer) -> None:
    gate = Gate()
    model.script(Script(tokens=("one ", "two"), gates={1: gate}))
    served = site.start("--workers", "2", **shared(model)).ready()
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        session_id = open_session(tab)
        send(tab, session_id, "hello")
        tab.event("TEXT_MESSAGE_CONTENT")
        for _ in range(2):
            served.process.send_signal(signal.SIGTERM)
        tab.until(lambda frame: frame.get("type") == "draining")
        assert served.get("/readyz").status_code == 503
        gate.release()
        tab.event("RUN_FINISHED")
        assert tab.close_code() == 4012
    assert served.rest() == 0


def test_it_stops_and_edits_from_any_worker(site: Site, model: FakeModelServer) -> None:
    """Sockets land on workers as the kernel deals; none of them needs the one that runs."""
    gate = Gate()
    model.script(Script(tokens=("one ", "two"), gates={1: gate}))
    served = site.start("--workers", "3", **shared(model, **configured(**DEAF))).ready()
    bearer = f"Bearer {site.token()}"
    with Tab(served, Authorization=bearer) as tab:
        session_id = open_session(tab)
        first = send(tab, session_id, "hello")
        tab.event("TEXT_MESSAGE_CONTENT")
        waiting = send(tab, session_id, "later")
        for number in range(6):
            with Tab(served, Authorization=bearer) as other:
                other.ask("hello", protocol="hermes.v1")
                mode = other.ask("session.subscribe", sessionId=session_id)["result"]["mode"]
                assert mode == "snapshot"
                edit = {"turnId": waiting["turnId"], "content": f"later {number}"}
                assert other.ask("queue.edit", **edit)["ok"]
                if number == 5:
                    assert other.ask("turn.stop", turnId=first["turnId"])["ok"]
        finished = tab.event("RUN_FINISHED")
        assert finished["outcome"]["type"] == "cancelled"
        tab.event("RUN_FINISHED")
        gate.release()
    kind = "SELECT parts FROM sessions_app_message WHERE kind = 'user' ORDER BY position"
    said = [text for (text,) in site.sql(kind)]
    assert "later 5" in said[1]
    assert served.end() == 0


def test_it_closes_sockets_of_a_token_that_a_command_revokes(
    site: Site, model: FakeModelServer
) -> None:
    """The command has no sockets: it wakes those who have."""
    env = shared(model, **configured(reauthorise_s=3600))
    served = site.start("--workers", "2", **env).ready()
    token = site.token()
    with Tab(served, Authorization=f"Bearer {token}") as tab:
        open_session(tab)
        done = site.manage("apitoken", "revoke", token[:12], REDIS_URL=os.environ["REDIS_URL"])
        assert done.returncode == 0, done.stdout
        assert tab.close_code() == 4001
    assert served.end() == 0


def test_it_bounds_a_persons_sockets_over_all_workers_also_when_one_dies(
    site: Site, model: FakeModelServer
) -> None:
    env = shared(model, **configured(user_sockets=4, limits_forget_s=8))
    served = site.start("--workers", "2", **env).ready()
    served.allow(5 * PATIENCE_S)
    bearer = f"Bearer {site.token()}"

    def enters(open_tabs: ExitStack) -> bool:
        try:
            tab = open_tabs.enter_context(Tab(served, Authorization=bearer))
            return bool(tab.ask("hello", protocol="hermes.v1")["ok"])
        except (WebSocketException, OSError):
            return False

    with ExitStack() as tabs, ExitStack() as later:
        until(lambda: enters(tabs))
        assert [enters(tabs) for _ in range(6)] == [True] * 3 + [False] * 3
        for pid in workers_of(served):
            os.kill(pid, signal.SIGKILL)
        for _ in range(4):
            until(lambda: enters(later))
        assert not enters(later)
    assert served.end() == 0


# --- runworker turns ---


def run_worker(site: Site, **env: str) -> Served:
    worker = site.keep(Served(site.data_dir, "manage.py", "runworker", "turns", **env))
    worker.read_until("Turns run here")
    return worker


def test_it_refuses_a_worker_without_redis(site: Site) -> None:
    done = site.manage("runworker", "turns")
    assert done.returncode == 1
    assert "Set REDIS_URL" in done.stdout


def test_it_runs_turns_where_workers_are_and_nowhere_else(
    site: Site, model: FakeModelServer
) -> None:
    """Accepted by a process that runs none; taken up again after a crash."""
    gates = [Gate(), Gate()]
    model.script(*(Script(tokens=("one ", "two"), gates={1: gate}) for gate in gates))
    env = shared(model, HERMES_TURNS="workers")
    deaf = {**env, **configured(**DEAF)}
    served = site.start(**deaf).ready()
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        session_id = open_session(tab)
        assert send(tab, session_id, "hello")["status"] == "queued"
        assert model.requests == []
        first = run_worker(site, **env)
        tab.event("TEXT_MESSAGE_CONTENT")
        second = run_worker(site, **deaf)
        first.process.kill()
        first.process.wait()
        third = run_worker(site, **deaf)  # finds what a dead process of this machine left
        assert tab.event("RUN_ERROR")["metadata"]["hermes"]["retrying"] is True
        tab.event("TEXT_MESSAGE_CONTENT")
        gates[1].release()
        tab.event("RUN_FINISHED")
        send(tab, session_id, "again")
        tab.event("RUN_FINISHED")
    assert [one.end() for one in (third, second, served)] == [0, 0, 0]
    [*states] = site.sql("SELECT state FROM gateway_app_turn")
    assert states == [("completed",), ("completed",)]


def test_it_takes_up_at_once_what_a_drain_left(site: Site, model: FakeModelServer) -> None:
    """Two servers, one leaves in the midst of an answer: no lease has to run out first."""
    model.script(Script(tokens=("one ", "two"), gates={1: Gate()}))
    hasty = configured(drain_s=0.2, lease_s=3600)
    leaving = site.start(**shared(model, **hasty)).ready()
    staying = site.start(**shared(model)).ready()
    bearer = f"Bearer {site.token()}"
    with Tab(leaving, Authorization=bearer) as tab, Tab(staying, Authorization=bearer) as other:
        session_id = open_session(tab)
        other.ask("hello", protocol="hermes.v1")
        other.ask("session.subscribe", sessionId=session_id)
        send(tab, session_id, "hello")
        other.event("TEXT_MESSAGE_CONTENT")
        leaving.process.send_signal(signal.SIGTERM)
        assert tab.close_code() == 4012
        assert other.event("RUN_ERROR")["metadata"]["hermes"]["retrying"] is True
        other.event("RUN_FINISHED")
    assert leaving.rest() == 0
    assert staying.end() == 0


def leased_until(site: Site) -> datetime:
    [(moment,)] = site.sql("SELECT lease_expires_at FROM sessions_app_session")
    return datetime.fromisoformat(moment)


def test_it_keeps_a_living_run_and_takes_a_dead_one_when_its_lease_is_over(
    site: Site, model: FakeModelServer
) -> None:
    """Two servers: the other one lets a long answer be, and goes on with it once nobody does."""
    model.script(Script(tokens=("one ", "two"), gates={1: Gate()}))
    env = shared(model, **configured(lease_s=10, lease_renew_s=1))
    dying, staying = (site.start(**env).ready() for _ in range(2))
    bearer = f"Bearer {site.token()}"
    with Tab(dying, Authorization=bearer) as tab, Tab(staying, Authorization=bearer) as other:
        session_id = open_session(tab)
        other.ask("hello", protocol="hermes.v1")
        other.ask("session.subscribe", sessionId=session_id)
        send(tab, session_id, "hello")
        other.event("TEXT_MESSAGE_CONTENT")
        first = leased_until(site)
        until(lambda: leased_until(site) > first + timedelta(seconds=12))
        assert len(model.requests) == 1, "its first lease ran out long ago, and was renewed"
        dying.process.kill()
        assert other.event("RUN_ERROR")["metadata"]["hermes"]["retrying"] is True
        other.event("RUN_FINISHED")
    assert len(model.requests) == 2
    assert site.sql("SELECT state, runs FROM gateway_app_turn") == [("completed", 2)]
    assert staying.end() == 0
