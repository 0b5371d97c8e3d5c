"""A server that has drained ends, whatever its tools still do."""

import fcntl
import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fake_model_server import FakeModelServer, Script, ToolCall
from tests.gateway_app.serving.conftest import Served, Site, Tab
from tests.gateway_app.serving.test_workers import until
from tests.sqlite_lock import held_elsewhere
from tests.toolbox.diary import DIARY


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


def test_it_ends_though_a_tool_hangs_in_a_thread_of_pythons_own(
    site: Site, model: FakeModelServer
) -> None:
    begun = site.data_dir / "diary"
    served = site.start(
        OPENAI_BASE_URL=model.url,
        OPENAI_API_KEY="sk-test",
        DJANGO_SETTINGS_MODULE="tests.toolbox.settings",
        **{DIARY: str(begun)},
    ).ready()
    site.sql("UPDATE gateway_app_agentversion SET tools = 'sink'")
    model.script(Script(tool_calls=[ToolCall("a1", "sink", ["{}"])]))
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        tab.ask("hello", protocol="hermes.v1")
        session_id = tab.ask("session.create", clientMessageId="s")["result"]["session"]["id"]
        tab.ask("session.subscribe", sessionId=session_id)
        fields = {"sessionId": session_id, "content": "Sink", "clientMessageId": "c"}
        turn_id = tab.ask("message.send", **fields)["result"]["turnId"]
        tab.until(lambda _: begun.exists())
        tab.ask("turn.stop", turnId=turn_id)
        tab.event("RUN_FINISHED")
    assert served.end() == 0


HANGING = """
import asyncio, sys
import django
django.setup()
from gateway_app.host import GatewayHost
from gateway_app.serving import leaving, turn_worker

async def never(gateway, *_):
    print("Hanging.", flush=True)
    await asyncio.Event().wait()

setattr(GatewayHost, sys.argv[1], never)
leaving._CLOSING_S = 0.2
asyncio.run(turn_worker.run_turns(lambda line: print(line, flush=True)))
"""


@pytest.mark.parametrize(
    ("hangs", "waits_for"),
    [("start", "Hanging."), ("drain", "Turns run here."), ("aclose", "Turns run here.")],
)
def test_it_ends_though_something_hangs(site: Site, hangs: str, waits_for: str) -> None:
    configured = {
        "DJANGO_SETTINGS_MODULE": "tests.configured",
        "HERMES_TEST_CONFIG": json.dumps({"drain_s": 0.2}),
    }
    worker = Served(site.data_dir, "-c", HANGING, hangs, **configured)
    with closing(worker):
        worker.read_until(waits_for)
        assert worker.end() == 0
    assert "did not end by itself" in "\n".join(worker.said)


FINALIZING = """
import signal
import django
django.setup()
from gateway_app.serving import leaving

def tell(line):
    print(line, flush=True)

class Kept:
    def __del__(self):
        tell("Letting go.")
        signal.pause()

leaving._CLOSING_S = 5
with leaving.ending_when_told(tell, "Stopped."):
    kept = Kept()
    del kept
    while True:
        signal.pause()
"""


def test_it_hears_a_signal_that_comes_while_something_is_let_go_of(site: Site) -> None:
    worker = Served(site.data_dir, "-c", FINALIZING, DJANGO_SETTINGS_MODULE="tests.configured")
    with closing(worker):
        worker.read_until("Letting go.")
        assert worker.end() == 0
    assert worker.said[-1] == "Stopped."
    assert "ignored" not in "\n".join(worker.said)


def listens(served: Served) -> bool:
    """Whether the process catches SIGTERM: it does as soon as its command runs."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_a_start_that_waits_for_another(empty_site: Site, number: int) -> None:
    empty_site.data_dir.mkdir()
    with Path(f"{empty_site.file}.starting").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        served = empty_site.start("--migrate")
        until(lambda: listens(served))
        for _ in range(2):
            served.process.send_signal(number)
        assert served.rest() == 0
    assert served.said == ["Stopped before it served."]


def test_it_ends_in_the_midst_of_a_migration_and_goes_on_with_it_later(site: Site) -> None:
    site.sql("DELETE FROM django_migrations WHERE app = 'sessions'")
    site.sql("DROP TABLE django_session")
    with held_elsewhere(site.file):
        served = site.start("--migrate")
        until(lambda: Path(f"{site.file}.lock").exists())
        assert served.end() == 0
    assert served.said[-1] == "Stopped before it was done. Nothing is lost; migrate again."
    later = site.start("--migrate").ready()
    assert later.end() == 0
