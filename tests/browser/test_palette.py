"""Search and commands: a combobox over a list box."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import PATIENCE_MS, ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Script
from tests.wire import Wire

pytestmark = pytest.mark.browser


def chosen(chat: ChatPage) -> Locator:
    return chat.page.locator('[role="option"][aria-selected="true"]')


def opened(chat: ChatPage, *typed: str) -> Locator:
    chat.page.keyboard.press("Control+k")
    field = chat.page.get_by_role("combobox")
    expect(field).to_be_focused()
    for text in typed:
        chat.page.keyboard.type(text)
    return field


def test_it_finds_a_conversation_by_its_title(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["A."]), Script(tokens=["B."]))
    chat.ask("Palette zebra one")
    first = chat.wait_opened()
    chat.page.get_by_role("button", name="New chat").click()
    expect(chat.bubbles).to_have_count(0)
    chat.ask("Palette zebra two")
    field = opened(chat, "ZEBRA")
    found = chat.page.get_by_role("group", name="Conversations").get_by_role("option")
    expect(found).to_have_count(2)
    expect(found.first.locator("mark")).to_have_text("zebra")
    expect(chosen(chat)).to_contain_text("Palette zebra two")
    identity = chosen(chat).get_attribute("id")
    assert identity
    expect(field).to_have_attribute("aria-activedescendant", identity)
    chat.page.keyboard.press("ArrowDown")
    expect(chosen(chat)).to_contain_text("Palette zebra one")
    with chat.page.context.expect_page() as tab:
        chat.page.keyboard.press("Control+Enter")
    tab.value.wait_for_url(chat.base_url + first)
    tab.value.close()
    opened(chat, "zebra one")
    expect(found).to_have_count(1)
    chat.page.keyboard.press("Enter")
    chat.page.wait_for_url(f"**{first}")
    expect(chat.answers).to_have_text("A.")


def test_it_keeps_what_was_chosen_when_the_server_finds_more(
    visit: Callable[..., NewPage], wire: Wire, served: Served, model: FakeModelServer
) -> None:
    chat = visit(wire.url)().open()
    model.script(Script(tokens=["A."]), Script(tokens=["B."]))
    chat.ask("Palette giraffe one")
    chat.page.get_by_role("button", name="New chat").click()
    expect(chat.bubbles).to_have_count(0)
    chat.ask("Palette giraffe two")
    add_unlisted(served, "Palette giraffe of another time")
    wire.silence()
    opened(chat, "giraffe")
    found = chat.page.get_by_role("group", name="Conversations").get_by_role("option")
    expect(found).to_have_count(2)
    chat.page.keyboard.press("ArrowDown")
    expect(chosen(chat)).to_contain_text("Palette giraffe one")
    wire.mend()
    expect(found).to_have_count(3)
    expect(chosen(chat)).to_contain_text("Palette giraffe one")


def add_unlisted(served: Served, title: str) -> None:
    """A conversation of another writer, of which no page is told."""
    with closing(sqlite3.connect(served.database, timeout=PATIENCE_MS / 1000)) as database:
        database.execute(
            "INSERT INTO sessions_app_session (key, owner_id, title, updated_at)"
            " SELECT ?, id, ?, '2020-03-15 10:00:00' FROM auth_user",
            (title, title),
        )
        database.commit()


def test_it_goes_round_its_ends_and_tells_of_nothing_found(chat: ChatPage) -> None:
    opened(chat, "no such title")
    expect(chat.page.get_by_text("Nothing found for “no such title” in titles.")).to_be_visible()
    expect(chosen(chat)).to_have_text("New chat asking “no such title”")
    chat.page.keyboard.press("Enter")
    expect(chat.field).to_have_value("no such title")
    opened(chat, ">")
    options = chat.page.get_by_role("option")
    expect(chat.page.get_by_role("group")).to_have_count(1)
    for key, place in {
        "End": "last",
        "Home": "first",
        "ArrowUp": "last",
        "ArrowDown": "first",
    }.items():
        chat.page.keyboard.press(key)
        expect(getattr(options, place)).to_have_attribute("aria-selected", "true")
        expect(chosen(chat)).to_have_count(1)


def test_it_runs_commands_and_gives_the_focus_back(chat: ChatPage) -> None:
    opened(chat, ">dark")
    chat.page.keyboard.press("Enter")
    expect(chat.page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(chat.field).to_be_focused()
    opened(chat)
    chat.page.keyboard.press("Escape")
    expect(chat.page.get_by_role("dialog")).to_have_count(0)
    expect(chat.field).to_be_focused()
    opened(chat, ">shortcuts")
    chat.page.keyboard.press("Enter")
    expect(chat.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
