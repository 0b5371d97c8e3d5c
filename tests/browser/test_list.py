"""The list of conversations: its marks in every tab, its menu, its archive."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser


def row_of(chat: ChatPage, path: str) -> Locator:
    return chat.page.locator(f'.session:has(a[href="{path}"])')


def choose(chat: ChatPage, path: str, entry: str) -> None:
    row = row_of(chat, path)
    row.hover()
    row.get_by_role("button").first.click()
    chat.page.get_by_role("menuitem", name=entry).click()


def test_it_marks_what_another_tab_does(
    chat: ChatPage, new_page: NewPage, model: FakeModelServer
) -> None:
    gate = Gate()
    refused = Script(status=401)
    model.script(Script(tokens=["One ", "two"], gates={1: gate}), refused)
    other = new_page().open()
    chat.send("Watched from afar")
    path = chat.wait_opened()
    row = row_of(other, path)
    expect(row).to_have_attribute("data-mark", "running")
    chat.page.get_by_role("button", name="New chat").click()
    gate.release()
    expect(row).to_have_attribute("data-mark", "unread")
    expect(row.get_by_role("link")).to_have_accessible_name("Watched from afar unread")
    row.get_by_role("link").click()
    for tab in (chat, other):
        expect(row_of(tab, path)).to_have_attribute("data-mark", "idle")
    other.send("This one fails")
    expect(row_of(chat, path)).to_have_attribute("data-mark", "failed")
    expect(row_of(chat, path).get_by_role("link")).to_have_accessible_name(
        "Watched from afar failed"
    )


@pytest.fixture
def empty(tmp_path: Path, model: FakeModelServer) -> Iterator[Served]:
    """A server of its own: the icon speaks of all conversations of a person."""
    with Served(tmp_path, model.url) as served:
        yield served


def test_it_keeps_what_is_unread_over_devices_and_shows_it_in_the_icon(
    visit: Callable[..., NewPage], empty: Served, model: FakeModelServer
) -> None:
    chat, gate = visit(empty.url)().open(), Gate()
    model.script(Script(tokens=["One ", "two"], gates={1: gate}))
    chat.send("Read on the phone")
    path = chat.wait_opened()
    chat.page.get_by_role("button", name="New chat").click()
    gate.release()
    expect(row_of(chat, path)).to_have_attribute("data-mark", "unread")
    chat.page.reload()
    expect(row_of(chat, path)).to_have_attribute("data-mark", "unread")
    icon = chat.page.locator("link[rel=icon]")
    news = icon.get_attribute("data-news")
    assert news
    assert icon.evaluate("link => link.href").endswith(news)
    visit(empty.url)().open(path)
    expect(row_of(chat, path)).to_have_attribute("data-mark", "idle")
    expect(icon).not_to_have_attribute("href", re.compile("news"))


def test_it_pins_and_archives_with_a_way_back(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.ask("To be kept at hand")
    path = chat.wait_opened()
    choose(chat, path, "Pin")
    pinned = chat.page.locator(".group", has=chat.page.get_by_role("heading", name="Pinned"))
    expect(pinned.locator(f'a[href="{path}"]')).to_be_visible()
    choose(chat, path, "Unpin")
    expect(pinned.locator(f'a[href="{path}"]')).to_have_count(0)
    choose(chat, path, "Archive")
    expect(row_of(chat, path)).to_have_count(0)
    expect(chat.answers).to_have_text("Yes.")
    chat.page.get_by_role("button", name="Undo").click()
    expect(row_of(chat, path)).to_have_count(1)
    choose(chat, path, "Archive")
    chat.page.get_by_role("button", name="Archived").click()
    expect(row_of(chat, path)).to_have_count(1)
    choose(chat, path, "Back to the list")
    expect(row_of(chat, path)).to_have_count(0)
    chat.page.get_by_role("button", name="Back to the conversations").click()
    expect(row_of(chat, path)).to_have_count(1)


def test_it_opens_the_menu_by_a_long_press(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    size = {"width": 390, "height": 844}
    chat = visit(served.url, viewport=size, has_touch=True, is_mobile=True)().open()
    model.script(Script(tokens=["Yes."]))
    chat.ask("Held for long")
    path = chat.wait_opened()
    chat.page.get_by_role("button", name="Show conversations").click()
    row_of(chat, path).get_by_role("link").dispatch_event("contextmenu", {"pointerType": "touch"})
    expect(chat.page.get_by_role("menuitem", name="Rename")).to_be_focused()


def test_it_copies_a_link_inside_the_drawer_without_https(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    """Browsers have `navigator.clipboard` only where the connection is secure."""
    chat = visit(served.url, viewport={"width": 800, "height": 700})()
    chat.page.add_init_script("delete Navigator.prototype.clipboard")
    chat.open()
    model.script(Script(tokens=["Yes."]))
    chat.ask("Shared from afar")
    path = chat.wait_opened()
    chat.page.get_by_role("button", name="Show conversations").click()
    choose(chat, path, "Copy link")
    expect(chat.part("toastText")).to_have_text("Link copied")
    chat.page.keyboard.press("Escape")
    chat.field.press("Control+v")
    expect(chat.field).to_have_value(chat.base_url + path)


def test_it_brings_the_list_into_sight_for_its_archive(
    visit: Callable[..., NewPage], served: Served
) -> None:
    chat = visit(served.url, viewport={"width": 800, "height": 700})().open()
    chat.page.keyboard.press("Control+k")
    chat.page.keyboard.type(">archived")
    chat.page.keyboard.press("Enter")
    drawer = chat.page.get_by_role("dialog", name="Conversations")
    expect(drawer.get_by_role("heading", name="Archived", exact=True)).to_be_visible()


def test_it_leaves_the_focus_in_the_field_after_a_row_is_gone(
    chat: ChatPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.ask("Deleted from afar")
    path = chat.wait_opened()
    chat.page.get_by_role("button", name="New chat").click()
    expect(chat.bubbles).to_have_count(0)
    choose(chat, path, "Delete conversation")
    expect(row_of(chat, path)).to_have_count(0)
    expect(chat.field).to_be_focused()


def test_it_folds_the_list_away_and_remembers_it(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name="Hide conversations").click()
    opener = chat.page.get_by_role("button", name="Show conversations")
    expect(opener).to_be_focused()
    chat.page.reload()
    expect(opener).to_be_visible()
    expect(chat.page.get_by_role("navigation")).to_be_hidden()
    opener.click()
    expect(chat.page.get_by_role("navigation", name="Conversations")).to_be_visible()
