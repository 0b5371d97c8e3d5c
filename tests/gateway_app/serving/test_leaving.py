"""A server that has drained ends, whatever its tools still do."""

from collections.abc import Iterator

import pytest

from tests.fake_model_server import FakeModelServer, Script, ToolCall
from tests.gateway_app.serving.conftest import Site, Tab
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
