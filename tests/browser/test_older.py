"""Older rows and older conversations come page by page."""

import re
import sqlite3
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import PATIENCE_MS, ChatPage
from tests.browser.conftest import NewPage
from tests.browser.older import HELD_AT_THE_LISTS_END, HELD_AT_THE_TOP, add_older_rows
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Script

pytestmark = pytest.mark.browser


def test_it_pages_older_rows_in_without_moving_what_is_read(
    chat: ChatPage, model: FakeModelServer, served: Served
) -> None:
    model.script(Script(tokens=["The newest answer."]))
    chat.ask("The newest question")
    path = chat.wait_opened()
    add_older_rows(served, path.split("/")[2], 170)
    chat.open(path)
    expect(chat.answers.last).to_have_text("The newest answer.")
    assert chat.bubbles.count() < 170
    seen = chat.page.get_by_text("Older row 160", exact=True)
    seen.scroll_into_view_if_needed()
    chat.page.get_by_text("Older row 125", exact=True).scroll_into_view_if_needed()
    place = chat.page.get_by_text("Older row 125", exact=True).bounding_box()
    expect(chat.page.get_by_text("Older row 100", exact=True)).to_be_attached()
    after = chat.page.get_by_text("Older row 125", exact=True).bounding_box()
    assert place is not None and after is not None
    assert abs(place["y"] - after["y"]) < 2
    chat.page.wait_for_function(HELD_AT_THE_TOP)
    expect(chat.page.get_by_text("Older row 0", exact=True)).to_be_attached()
    expect(chat.bubbles).to_have_count(171)
    chat.page.get_by_role("button", name="Go to the newest message").click()
    expect(chat.answers.last).to_be_in_viewport()


def test_a_page_of_older_rows_that_does_not_fill_the_screen_brings_the_next(
    visit: Callable[..., NewPage], model: FakeModelServer, served: Served
) -> None:
    chat = visit(served.url, viewport={"width": 1280, "height": 4000})().open()
    model.script(Script(tokens=["The newest answer."]))
    chat.ask("The newest question")
    path = chat.wait_opened()
    add_older_rows(served, path.split("/")[2], 170)
    chat.open(path)
    expect(chat.bubbles).to_have_count(171)


def test_it_lists_older_conversations_page_by_page(chat: ChatPage, served: Served) -> None:
    with sqlite3.connect(served.database, timeout=PATIENCE_MS / 1000) as database:
        database.executemany(
            "INSERT INTO sessions_app_session (key, owner_id, title, updated_at)"
            " SELECT ?, id, ?, ? FROM auth_user",
            [(f"old:{n}", f"Old {n}", f"2020-03-15 10:{n:02d}:00") for n in range(60)],
        )
    database.close()
    chat.page.reload()
    expect(chat.page.get_by_role("button", name="Show older conversations")).to_be_visible()
    chat.page.wait_for_function(HELD_AT_THE_LISTS_END)
    expect(chat.page.get_by_role("heading", name="March 2020")).to_be_visible()
    expect(chat.sessions.filter(has_text=re.compile(r"^Old \d+$"))).to_have_count(60)
    expect(chat.sessions.last).to_have_text("Old 0")
