"""What the chat does when the network or the server goes away, and what it keeps meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import RESTART_MS, ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.wire import Wire

pytestmark = pytest.mark.browser

CUT = ("net::ERR_", "WebSocket connection to")
"""What Chromium itself says on the console when a connection breaks."""

Visit = Callable[..., NewPage]


@pytest.fixture
def chat(visit: Visit, wire: Wire) -> ChatPage:
    """One tab that reaches the server over a wire."""
    tab = visit(wire.url)().open()
    tab.expected = CUT
    return tab


def test_it_keeps_what_is_sent_offline_and_sends_it_once_in_order(
    chat: ChatPage, wire: Wire, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Zero."]))
    chat.ask("Zero")
    wire.cut()
    strip = chat.page.locator(".strip")
    expect(strip).to_contain_text("Reconnecting.")
    for text in ("One", "Two", "Never"):
        chat.send(text)
    expect(strip).to_contain_text("3 messages wait here")
    expect(chat.page.locator(".user[data-state=waiting]")).to_have_count(3)
    expect(chat.page.get_by_text("Sends 2nd when back")).to_be_visible()
    chat.page.get_by_role("button", name="Remove").nth(2).click()
    expect(chat.bubbles).to_have_text(["Zero", "One", "Two"])
    model.script(Script(tokens=["First."]), Script(tokens=["Second."]))
    wire.mend()
    # it may have come back by itself before the press
    strip.locator("[data-part=stripAction]").dispatch_event("click")
    expect(chat.footers).to_have_count(3)
    expect(strip).to_be_hidden()
    told = [
        ("user", "Zero"), ("answer", "Zero."),
        ("user", "One"), ("answer", "First."),
        ("user", "Two"), ("answer", "Second."),
    ]  # fmt: skip
    assert chat.texts() == told
    chat.page.reload()
    expect(chat.footers).to_have_count(3)
    assert chat.texts() == told


def test_it_keeps_the_outbox_over_a_reload(
    chat: ChatPage, visit: Visit, wire: Wire, model: FakeModelServer
) -> None:
    """The tab dies with a message in it; the next one at this address sends it."""
    model.script(Script(tokens=["Zero."]), Script(tokens=["Sent after all."]))
    chat.ask("Zero")
    path = chat.wait_opened()
    wire.cut()
    expect(chat.page.locator(".strip")).to_be_visible()
    chat.send("Kept")
    expect(chat.page.locator(".user[data-state=waiting]")).to_have_count(1)
    wire.mend()
    chat.page.goto(chat.base_url + path)
    expect(chat.footers).to_have_count(2)
    assert chat.texts()[2:] == [("user", "Kept"), ("answer", "Sent after all.")]


def test_it_opens_one_conversation_with_all_that_was_written_offline_for_it(
    chat: ChatPage, wire: Wire, model: FakeModelServer
) -> None:
    wire.cut()
    expect(chat.page.locator(".strip")).to_be_visible()
    chat.send("First of a new one")
    chat.send("Second of it")
    expect(chat.page.locator(".user[data-state=waiting]")).to_have_count(2)
    model.script(Script(tokens=["A."]), Script(tokens=["B."]))
    wire.mend()
    expect(chat.footers).to_have_count(2)
    assert chat.texts() == [
        ("user", "First of a new one"),
        ("answer", "A."),
        ("user", "Second of it"),
        ("answer", "B."),
    ]
    chat.wait_opened()


def test_it_catches_up_with_what_was_written_while_it_was_away(
    chat: ChatPage, wire: Wire, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=["Before. ", "Meanwhile. ", "After."], gates={1: gate}))
    chat.send("Go")
    expect(chat.live).to_have_text("Before.")
    wire.cut()
    expect(chat.page.get_by_text("Text stops here.")).to_be_visible()
    gate.release()
    wire.mend()
    expect(chat.footers).to_have_count(1)
    expect(chat.answers).to_have_text("Before. Meanwhile. After.")


def test_it_notices_a_dead_wire_when_the_network_changes(chat: ChatPage, wire: Wire) -> None:
    """Nothing closes a half-open socket: only silence tells."""
    wire.silence()
    chat.page.evaluate("dispatchEvent(new Event('offline'))")
    expect(chat.page.locator(".strip")).to_be_visible()
    wire.cut()
    wire.mend()
    chat.wait_connected()
    expect(chat.page.locator(".strip")).to_be_hidden()


def test_it_says_that_the_server_restarts_and_goes_on_with_the_new_one(
    visit: Visit, model: FakeModelServer, tmp_path: Path
) -> None:
    gate = Gate()
    model.script(Script(tokens=["Before ", "the restart."], gates={1: gate}))
    with Served(tmp_path, model.url) as first, Wire(first.port) as wire:
        chat = visit(wire.url)().open()
        chat.expected = CUT
        chat.send("Go")
        expect(chat.live).to_have_text("Before")
        first.tell_to_stop()
        strip = chat.page.locator(".strip")
        expect(strip).to_contain_text("This server restarts; you are moved over.")
        chat.send("For the next server")
        gate.release()
        expect(chat.footers).to_have_count(1)
        first.wait()
        model.script(Script(tokens=["Here."]))
        with Served(tmp_path, model.url) as second:
            wire.lead_to(second.port)
            expect(chat.footers).to_have_count(2, timeout=RESTART_MS)
            assert chat.texts() == [
                ("user", "Go"),
                ("answer", "Before the restart."),
                ("user", "For the next server"),
                ("answer", "Here."),
            ]


def test_it_shows_what_was_read_before_a_crash_and_runs_the_turn_again(
    visit: Visit, model: FakeModelServer, tmp_path: Path
) -> None:
    gate = Gate()
    model.script(Script(tokens=["Half of ", "it."], gates={1: gate}))
    with Served(tmp_path, model.url) as first, Wire(first.port) as wire:
        chat = visit(wire.url)().open()
        chat.expected = CUT
        chat.send("Go")
        expect(chat.live).to_have_text("Half of")
        first.kill()
        gate.release()
        model.script(Script(tokens=["All of it."]))
        with Served(tmp_path, model.url) as second:
            wire.lead_to(second.port)
            expect(chat.footers).to_have_count(1, timeout=RESTART_MS)
            expect(chat.answers).to_have_text("All of it.")
            attempt = chat.page.locator(".folded")
            expect(attempt).to_contain_text("Interrupted attempt")
            attempt.locator("summary").click()
            expect(attempt).to_contain_text("Half of")


def test_it_asks_for_a_login_when_the_login_ended(visit: Visit, served: Served) -> None:
    new_page = visit(served.url)
    chat = new_page().open()
    chat.page.context.clear_cookies()
    chat.page.reload()
    chat.page.wait_for_url("**/accounts/login/?next=**")


def test_it_asks_for_a_login_in_the_page_when_the_login_is_taken_away(
    new_page: NewPage, model: FakeModelServer
) -> None:
    chat, other = new_page().open(), new_page().open()
    chat.expected = CUT
    chat.field.fill("Half a thought")
    other.page.evaluate("document.querySelector('[data-part=logOut]').requestSubmit()")
    other.page.wait_for_url("**/accounts/login/")
    strip = chat.page.locator(".strip")
    expect(strip).to_contain_text("Your login has ended.")
    expect(chat.part("alert")).to_have_text("Your login has ended.")
    expect(chat.field).to_have_value("Half a thought")
    strip.get_by_role("button", name="Log in").click()
    chat.page.wait_for_url("**/accounts/login/?next=**")


def test_it_learns_that_the_server_was_updated_and_keeps_the_draft(
    visit: Visit, model: FakeModelServer, tmp_path: Path
) -> None:
    with Served(tmp_path, model.url) as first, Wire(first.port) as wire:
        chat = visit(wire.url)().open()
        chat.expected = CUT
        strip = chat.page.locator(".strip")
        chat.field.fill("Half a thought")
        first.stop()
        settings = {"DJANGO_SETTINGS_MODULE": "tests.browser.other_release.settings"}
        with Served(tmp_path, model.url, **settings) as second:
            wire.lead_to(second.port)
            expect(strip).to_contain_text("Hermes was updated.", timeout=RESTART_MS)
            strip.get_by_role("button", name="Load again").click()
            chat.wait_connected()
            expect(strip).to_be_hidden()
            expect(chat.field).to_have_value("Half a thought")


def test_it_notices_a_half_open_socket_within_two_heartbeats_and_catches_up(
    visit: Visit, wire: Wire, model: FakeModelServer
) -> None:
    """Nothing closes it and nothing passes: the answer that ended meanwhile is shown as ended."""
    chat = visit(wire.url)()
    chat.expected = CUT
    chat.page.clock.install()
    chat.open()
    gate = Gate()
    model.script(Script(tokens=["Before. ", "After."], gates={1: gate}))
    chat.send("Go")
    expect(chat.live).to_have_text("Before.")
    wire.silence()
    gate.release()
    chat.page.clock.fast_forward(30_000)
    chat.page.clock.fast_forward(20_000)
    expect(chat.page.locator(".strip")).to_be_visible()
    wire.cut()
    wire.mend()
    chat.page.clock.run_for(30_000)
    expect(chat.footers).to_have_count(1)
    expect(chat.answers).to_have_text("Before. After.")
    expect(chat.page.locator(".strip")).to_be_hidden()


BUBBLES_SEEN = """text => {
  const seen = window.seen = new Set();
  const look = () => {
    const found = [...document.querySelectorAll(".user .bubble")];
    const own = found.filter((one) => one.innerText.trim() === text);
    if (own.length > 0 || seen.size > 0) {
      const row = own[0]?.closest(".row");
      seen.add(`${own.length} at ${row?.offsetTop}`);
    }
    requestAnimationFrame(look);
  };
  look();
}"""


def test_it_shows_one_bubble_that_stays_in_its_place_before_during_and_after_the_echo(
    chat: ChatPage, wire: Wire, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Zero."]), Script(tokens=["One."]))
    chat.ask("Open it")
    wire.delay_s = 1.5  # each way: three seconds round
    chat.page.evaluate(BUBBLES_SEEN, "Slow words")
    chat.send("Slow words")
    expect(chat.footers).to_have_count(2)
    seen = chat.page.evaluate("[...window.seen]")
    assert len(seen) == 1 and seen[0].startswith("1 at "), seen


def test_it_sends_what_two_tabs_keep_once(visit: Visit, wire: Wire, model: FakeModelServer) -> None:
    new_page = visit(wire.url)
    one = new_page().open()
    one.expected = CUT
    model.script(Script(tokens=["Zero."]), Script(tokens=["A."]), Script(tokens=["B."]))
    one.ask("Zero")
    other = new_page()
    other.expected = CUT
    other.open(one.wait_opened())
    expect(other.bubbles).to_have_text(["Zero"])
    wire.cut()
    for tab in (one, other):
        expect(tab.page.locator(".strip")).to_be_visible()
    one.send("From the one")
    other.send("From the other")
    for tab in (one, other):
        expect(tab.bubbles).to_have_text(["Zero", "From the one", "From the other"])
    asked = len(model.requests)
    wire.mend()
    told = [
        ("user", "Zero"), ("answer", "Zero."), ("user", "From the one"), ("answer", "A."),
        ("user", "From the other"), ("answer", "B."),
    ]  # fmt: skip
    for tab in (one, other):
        expect(tab.footers).to_have_count(3)
        assert tab.texts() == told
    assert len(model.requests) == asked + 2
