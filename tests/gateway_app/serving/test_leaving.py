"""A server that has drained ends, whatever its tools still do."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.fake_model_server import FakeModelServer, Script, ToolCall
from tests.gateway_app.serving.conftest import Served, Site, Tab
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
import asyncio
import django
django.setup()
from gateway_app.host import GatewayHost
from gateway_app.serving import leaving, turn_worker

async def never(gateway):
    await asyncio.Event().wait()

GatewayHost.aclose = never
leaving._CLOSING_S = 0.2
asyncio.run(turn_worker.run_turns(lambda line: print(line, flush=True)))
"""


def test_it_ends_though_something_cannot_be_closed(site: Site) -> None:
    worker = Served(site.data_dir, "-c", HANGING, DJANGO_SETTINGS_MODULE="hermes_site.settings")
    with closing(worker):
        worker.read_until("Turns run here.")
        assert worker.end() == 0
    assert "did not end by itself" in "\n".join(worker.said)
