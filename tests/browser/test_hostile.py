"""Hostile texts in every field that a page shows: nothing runs, and the page stays usable."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat_page import PATIENCE_MS, ChatPage
from tests.browser.conftest import NewPage
from tests.browser.hostile import ANSWERS, MARKUP
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser

BATCHES: Final = [ANSWERS[at : at + 12] for at in range(0, len(ANSWERS), 12)]


@pytest.fixture
def watched(new_page: NewPage) -> Iterator[ChatPage]:
    """A tab that may ask nobody but its server for anything, and in which nothing may run."""
    chat = new_page()
    asked: list[str] = []
    dialogs: list[str] = []
    chat.page.context.on("request", lambda request: asked.append(request.url))
    chat.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    chat.page.on("popup", lambda page: dialogs.append(page.url))
    yield chat
    assert dialogs == []
    assert not [url for url in asked if not url.startswith((chat.base_url, "blob:", "data:"))]


def check_unharmed(page: Page) -> None:
    """Nothing ran in the page or in a frame of it, and nothing lies over the field."""
    assert page.evaluate("window.ran") is None
    forbidden = (
        "script, iframe, form, style, object, embed, base, meta, link, input,"
        " [style*=url], [onload], [onerror], [onclick], [onmouseover]"
    )
    assert page.locator(f".thread :is({forbidden})").count() == 0
    links = page.locator(".thread a[href]")
    for href in links.evaluate_all("all => all.map(link => link.getAttribute('href'))"):
        assert href.startswith(("https://", "http://", "mailto:"))
    hit = """() => {
      const field = document.getElementById("message");
      const { x, y, width, height } = field.getBoundingClientRect();
      return document.elementFromPoint(x + width / 2, y + height / 2) === field;
    }"""
    assert page.evaluate(hit)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def store(served: Served, session: str, rows: list[tuple[str, object]]) -> None:
    """Rows of another writer, after everything the session has."""
    key = session.replace("-", "")
    with sqlite3.connect(served.database, timeout=PATIENCE_MS / 1000) as database:
        database.executemany(
            "INSERT INTO sessions_app_message (session_id, kind, parts) VALUES (?, ?, ?)",
            [(key, kind, json.dumps(parts)) for kind, parts in rows],
        )
    database.close()


def session_id(path: str) -> str:
    return path.strip("/").rpartition("/")[2]


@pytest.mark.parametrize("texts", BATCHES, ids=range(len(BATCHES)))
def test_it_shows_stored_rows_of_hostile_texts(
    watched: ChatPage, served: Served, model: FakeModelServer, texts: list[str]
) -> None:
    """Every kind of row, with the text as words, reasoning, tool name, arguments and result."""
    chat = watched.open()
    model.script(Script(tokens=["First."]))
    chat.ask("Begin")
    path = chat.wait_opened()
    rows: list[tuple[str, object]] = []
    for at, text in enumerate(texts):
        said = [{"type": "text", "text": text}]
        call = {"type": "tool_call", "id": f"{at}{text[:9]}", "name": text, "arguments": text}
        result = {"type": "tool_result", "callId": call["id"], "content": text}
        rows += [("user", said), ("assistant", [{"type": "reasoning", "text": text}, *said, call])]
        rows += [("tool", [result])]
        rows += [(kind, said) for kind in ("notice", "operator", "summary")[at % 3 : at % 3 + 1]]
    store(served, session_id(path), rows)
    chat.page.reload()
    expect(chat.page.locator(".row.answer")).to_have_count(len(texts) + 1)
    for row in chat.page.locator("summary").all():
        row.evaluate("summary => summary.click()")
    expect(
        chat.page.locator(".diagram:has(> .drawn[hidden]):has(> .failed[hidden])")
    ).to_have_count(0)
    check_unharmed(chat.page)
    assert chat.bubbles.last.evaluate("bubble => bubble.textContent") == texts[-1].replace(
        "\0", "\ufffd"
    )
    chat.page.goto(f"{chat.base_url}/admin/sessions_app/session/{session_id(path)}/transcript/")
    expect(chat.page.locator("body")).to_contain_text("Begin")
    assert chat.page.evaluate("window.ran") is None


def test_it_streams_hostile_texts(watched: ChatPage, model: FakeModelServer) -> None:
    """All of them as one answer in small pieces, looked at while it grows."""
    chat = watched.open()
    text = "\n\n".join(text for text in ANSWERS if len(text) < 1000)
    pieces = [text[at : at + 23] for at in range(0, len(text), 23)]
    gates = {len(pieces) // 3: Gate(), 2 * len(pieces) // 3: Gate()}
    model.script(Script(tokens=pieces, reasoning=[], gates=gates))
    chat.send("Go")
    for gate in gates.values():
        expect(chat.live).not_to_be_empty()
        check_unharmed(chat.page)
        gate.release()
    expect(chat.footers).to_have_count(1)
    check_unharmed(chat.page)
    chat.page.reload()
    expect(chat.footers).to_have_count(1)
    check_unharmed(chat.page)


def test_it_names_people_agents_and_conversations_by_hostile_texts(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    """Title, person, agent and model, all texts after each other, and the admin's list of them."""
    chat = visit(served.url)().open()
    model.script(Script(tokens=["First."]))
    chat.ask("Begin")
    path = chat.wait_opened()
    names = [text.replace("\0", "") for text in MARKUP.values() if len(text) < 1000]
    with sqlite3.connect(served.database, timeout=PATIENCE_MS / 1000) as database:
        [before] = database.execute("SELECT first_name FROM auth_user WHERE username = 'admin'")
        [agent] = database.execute("SELECT id, name FROM gateway_app_agent LIMIT 1")
    try:
        for name in names:
            rename(served, session_id(path), agent[0], name, name)
            chat.page.reload()
            expect(chat.page.locator("h1")).to_have_text(name.strip())
            assert chat.page.evaluate("window.ran") is None
        check_unharmed(chat.page)
        chat.page.goto(f"{chat.base_url}/admin/sessions_app/session/")
        expect(chat.page.locator("#result_list")).to_be_visible()
        assert chat.page.evaluate("window.ran") is None
    finally:
        rename(served, session_id(path), agent[0], before[0], agent[1])


def rename(served: Served, session: str, agent: object, person: str, name: str) -> None:
    with sqlite3.connect(served.database, timeout=PATIENCE_MS / 1000) as database:
        row = (name, session.replace("-", ""))
        database.execute("UPDATE sessions_app_session SET title = ? WHERE id = ?", row)
        database.execute("UPDATE gateway_app_agent SET name = ? WHERE id = ?", (name[:80], agent))
        database.execute("UPDATE auth_user SET first_name = ?", (person[:150],))
    database.close()


def test_it_queues_and_fails_with_hostile_texts(watched: ChatPage, model: FakeModelServer) -> None:
    chat = watched.open()
    gate = Gate()
    texts = [text for text in MARKUP.values() if len(text) < 200][:20]
    model.script(Script(tokens=["One ", "done."], gates={1: gate}))
    chat.send("Go")
    expect(chat.live).to_have_text("One")
    for text in texts:
        chat.send(text)
    expect(chat.queued.first).to_have_text(texts[0])
    check_unharmed(chat.page)
    error = {"message": texts[0], "code": texts[1], "type": texts[2]}
    model.script(*[Script(status=400, error=error) for _ in texts])
    gate.release()
    expect(chat.page.locator(".notice[data-state=failed]")).to_have_count(len(texts))
    check_unharmed(chat.page)
