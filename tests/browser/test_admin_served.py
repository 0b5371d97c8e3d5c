"""The admin beside a real process: what it tells of itself, and that it obeys."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.served import Served

pytestmark = pytest.mark.browser


def test_it_sees_and_empties_the_cache_of_the_process(chat: ChatPage, served: Served) -> None:
    for text in ("Hello", "And again"):
        chat.ask(text)
    session = chat.wait_opened().strip("/").rpartition("/")[2]
    page = chat.page
    page.goto(f"{served.url}/admin/board/")
    caches = page.locator("#board-caches")
    expect(caches).to_contain_text(re.compile(r"[1-9]\d* / 128"))
    page.goto(f"{served.url}/admin/sessions_app/session/{session}/transcript/")
    facts = page.locator("#transcript-facts")  # agents of other tests may be told already
    expect(facts).to_contain_text("up to date")
    page.goto(f"{served.url}/admin/board/")
    page.get_by_role("button", name="Evict idle").click()
    expect(caches).to_contain_text(re.compile(r"[1-9]\d* agents? dropped"))
    expect(caches).to_contain_text("0 / 128")
    page.set_viewport_size({"width": 1280, "height": 720})
    row = page.locator(".h-scroll").filter(has=page.locator("#cache-1"))
    assert row.evaluate("table => table.scrollWidth - table.clientWidth") == 0


def test_it_gives_files_of_a_conversation_in_pieces(chat: ChatPage, served: Served) -> None:
    chat.ask("A question for the file")
    session = chat.wait_opened().strip("/").rpartition("/")[2]
    address = f"{served.url}/admin/sessions_app/session/{session}/transcript/"
    raw = chat.page.request.get(f"{address}raw/")
    assert raw.status == 200
    assert [row["kind"] for row in raw.json()["messages"]][:2] == ["user", "assistant"]
    for file in ("export.jsonl", "export.md"):
        answer = chat.page.request.get(f"{address}{file}")
        assert answer.status == 200
        assert "A question for the file" in answer.text()
