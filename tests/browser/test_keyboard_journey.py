"""A first visit from beginning to end, without a mouse."""

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser

FOCUSED = "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"


def press(chat: ChatPage, *keys: str) -> None:
    for key in keys:
        chat.page.keyboard.press(key)


def tab_to(chat: ChatPage, name: str) -> None:
    """Goes on with Tab until what has the focus is called `name`."""
    for _ in range(120):
        press(chat, "Tab")
        if chat.page.evaluate(FOCUSED).strip().startswith(name):
            return
    raise AssertionError(f"Tab never came to {name!r}.")


def test_it_is_used_whole_without_a_mouse(new_page: NewPage, model: FakeModelServer) -> None:
    chat, gate = new_page().open_with_clock(), Gate()
    model.script(
        Script(tokens=["Three sentences."]), Script(tokens=["Kept. ", "Never."], gates={1: gate})
    )
    # first visit: a suggestion, from the field onwards
    expect(chat.field).to_be_focused()
    tab_to(chat, "Summarise a text")
    press(chat, "Enter")
    expect(chat.field).to_be_focused()
    chat.page.keyboard.type("Journey, first leg")
    press(chat, "Enter")
    expect(chat.answers).to_have_text("Three sentences.")
    # a new chat, and an answer that is stopped
    press(chat, "Control+Shift+O")
    expect(chat.bubbles).to_have_count(0)
    chat.page.keyboard.type("Journey, second leg")
    press(chat, "Enter")
    expect(chat.live).to_have_text("Kept.")
    chat.hold_clock()  # the second press comes in time
    press(chat, "Escape", "Escape")
    chat.page.clock.resume()
    expect(chat.page.get_by_text("Stopped here")).to_be_visible()
    gate.release()
    second = chat.wait_opened()
    # back to the first by the palette
    press(chat, "Control+k")
    chat.page.keyboard.type("three sentences")
    found = chat.page.get_by_role("option", name="Summarise this text in three sentences")
    expect(found.first).to_have_attribute("aria-selected", "true")
    press(chat, "Enter")
    chat.page.wait_for_url(lambda url: second not in url and "/c/" in url)
    expect(chat.answers).to_have_text("Three sentences.")
    # renamed by a command
    press(chat, "Control+k")
    chat.page.keyboard.type(">rename")
    press(chat, "Enter")
    chat.page.keyboard.type("Journey renamed")
    press(chat, "Enter")
    expect(chat.page.locator("h1")).to_have_text("Journey renamed")
    expect(chat.part("titleMenu")).to_be_focused()
    # deleted from the list's menu, and back by Undo
    press(chat, "Shift+Escape")
    expect(chat.field).to_be_focused()
    tab_to(chat, "More for Journey renamed")
    press(chat, "Enter", "End", "Enter")
    undo = chat.page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    row = chat.page.locator(".session", has_text="Journey renamed")
    expect(row).to_have_count(0)
    tab_to(chat, "Undo")
    press(chat, "Enter")
    expect(row).to_have_count(1)
    expect(chat.page.locator("h1")).to_have_text("Journey renamed")
