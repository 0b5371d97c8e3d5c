"""A tool call in the chat: running, done, failed, and of unknown outcome after a crash."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import RESTART_MS
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Script, ToolCall
from tests.toolbox.diary import DIARY, HOLD, read_diary
from tests.wire import Wire

pytestmark = pytest.mark.browser

Visit = Callable[..., NewPage]

LEFT = ToolCall("a1", "look", ['{"where": "left"}'])
RIGHT = ToolCall("a2", "look", ['{"where": "right"}'])
WRONG = ToolCall("a3", "look", ['{"where": 3}'])


@pytest.fixture
def equipped(tmp_path: Path, model: FakeModelServer) -> Iterator[Served]:
    """A server of its own, whose agent may look; looking to the left takes long."""
    os.mkfifo(tmp_path / "left")
    with serve(tmp_path, model) as served:
        with closing(sqlite3.connect(served.database)) as database:
            database.execute("UPDATE gateway_app_agentversion SET tools = 'look'")
            database.commit()
        yield served


def serve(folder: Path, model: FakeModelServer) -> Served:
    settings = {"DJANGO_SETTINGS_MODULE": "tests.toolbox.settings"}
    held = {HOLD: str(folder), DIARY: str(folder / "calls")}
    return Served(folder, model.url, **settings, **held)


def test_it_shows_how_each_call_stands(
    equipped: Served, tmp_path: Path, model: FakeModelServer, visit: Visit
) -> None:
    model.script(Script(tokens=["I look."], tool_calls=[LEFT, RIGHT, WRONG]), Script())
    chat = visit(equipped.url)().open()
    chat.send("Look around")
    calls = chat.page.locator(".call")
    states = chat.page.locator(".call-state")
    expect(states).to_have_text([
        "Running", "Nothing is right.",
        "The arguments do not fit: where: Input should be a valid string.",
    ])  # fmt: skip
    expect(states.nth(0).locator(".ring")).to_be_visible()
    assert calls.nth(0).get_attribute("open") is None
    (tmp_path / "left").write_bytes(b"")
    expect(states.nth(0)).to_have_text("Nothing is left.")
    expect(chat.footers).to_have_count(1)
    calls.nth(2).locator("summary").click()
    expect(calls.nth(2).locator('[data-part="arguments"]')).to_have_text('{"where": 3}')
    shown = states.all_text_contents()
    chat.page.reload()
    expect(states).to_have_text(shown)
    kinds = [state.get_attribute("data-state") for state in states.all()]
    assert kinds == ["done", "done", "failed"]


@pytest.fixture
def wire(equipped: Served) -> Iterator[Wire]:
    with Wire(equipped.port) as wire:
        yield wire


def test_it_says_after_a_crash_that_a_call_may_have_run(
    equipped: Served, wire: Wire, tmp_path: Path, model: FakeModelServer, visit: Visit
) -> None:
    model.script(Script(tokens=["I look."], tool_calls=[LEFT]), Script(tokens=["Who knows."]))
    chat = visit(wire.url)().open()
    chat.expected = ("net::ERR_", "WebSocket connection to")
    chat.send("Look around")
    state = chat.page.locator(".call-state")
    expect(state).to_have_text("Running")
    with (tmp_path / "left").open("wb"):  # once the call reads from it
        equipped.kill()
    with serve(tmp_path, model) as second:
        wire.lead_to(second.port)
        expect(state).to_have_text("It may have run. It was not run again.", timeout=RESTART_MS)
        expect(chat.answers.last).to_have_text("Who knows.")
        assert state.get_attribute("data-state") == "unknown"
        assert len(read_diary(tmp_path / "calls")) == 1
