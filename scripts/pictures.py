"""Take the README's pictures: `.venv/bin/python -m scripts.pictures`.

Starts `manage.py serve` on an empty data directory with a model server that knows a few answers,
chats with it in Chromium, and keeps the chat (light, and dark on a phone), the admin's page of the
transcript and the live board in docs/pictures/. Everything in the pictures is the product; only the
model is scripted.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.chat_page import PATIENCE_MS, ChatPage
from tests.browser.served import PASSWORD, ROOT, Served
from tests.fake_model_server import FakeModelServer, Gate, Script

PICTURES: Final = ROOT / "docs/pictures"
SIZE: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
MODEL: Final = "qwen3-8b"
LARGEST: Final = 300_000
"""Bytes of a picture: a page that shows three of them is still quick."""

EARLIER: Final = (
    ("Words for a birthday card", "Another year, another row in the log. Here is to many more!"),
    ("Which cheese goes with pears?", "A blue one: Gorgonzola, or Roquefort if you are brave."),
    ("Plan two days in Ghent", "Day one: the castle, the lace of towers, the altarpiece."),
)
QUESTION: Final = "What is a prompt cache, in two sentences?"
ANSWER: Final = (
    "A provider keeps what it has computed for the **beginning** of your request. If the next"
    " request begins with the same bytes, that part is not computed again: it costs a fraction, and"
    " the answer begins sooner."
)
FOLLOW_UP: Final = "Show me how to check that one request begins with another."
REASONING: Final = (
    "The person wants a check of prefixes. Both requests are lists of messages, so comparing the"
    " first n of them is enough."
)
CODE: Final = (
    "Compare the messages one by one, up to the length of the earlier request:\n\n"
    "```python\n"
    "def begins_with(request: list[str], earlier: list[str]) -> bool:\n"
    '    """Whether the provider has seen the beginning of this request."""\n'
    "    return request[: len(earlier)] == earlier\n"
    "```\n\n"
    "Two things break it more often than one would think:\n\n"
    "- a **clock** or an id in the system prompt\n"
    "- keys of JSON objects in another order\n"
)


def pieces(text: str) -> list[str]:
    return [text[start : start + 12] for start in range(0, len(text), 12)]


def usage(prompt: int, cached: int, written: int) -> dict[str, object]:
    """What a provider with a prompt cache would tell of such a request."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def converse(chat: ChatPage, model: FakeModelServer) -> None:
    """A few conversations for the list, then the one in the picture."""
    for question, answer in EARLIER:
        model.script(Script(tokens=pieces(answer)))
        chat.open()
        chat.ask(question)
    model.script(
        Script(tokens=pieces(ANSWER), usage=usage(2486, 0, 61), first_token_delay_s=0.4),
        Script(
            reasoning=pieces(REASONING),
            tokens=pieces(CODE),
            usage=usage(2563, 2547, 148),
            first_token_delay_s=0.2,
        ),
    )
    chat.open()
    chat.ask(QUESTION)
    chat.ask(FOLLOW_UP)


def enter(browser: Browser, served: Served) -> Page:
    """A page of somebody who is logged in as admin."""
    context = browser.new_context(
        viewport=SIZE, device_scale_factor=1.5, color_scheme="light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{served.url}/accounts/login/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{served.url}/")
    return page


def coloured(page: Page) -> None:
    """The code has its colours, which come from a worker."""
    expect(page.locator(".code-keyword").first).to_be_visible(timeout=PATIENCE_MS)


def keep(page: Page, path: Path) -> None:
    page.mouse.move(0, 0)
    page.screenshot(path=path)
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path} is larger than {LARGEST} bytes.")


def on_a_phone(page: Page, served: Served, path: str, picture: Path) -> None:
    """The same person opens the same conversation in dark on a phone."""
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(
        viewport=PHONE,
        device_scale_factor=2,
        color_scheme="dark",
        reduced_motion="reduce",
        has_touch=True,
        is_mobile=True,
        storage_state=page.context.storage_state(),
    )
    phone = ChatPage(context.new_page(), served.url)
    phone.page.goto(served.url + path)
    expect(phone.footers).to_have_count(2)
    coloured(phone.page)
    keep(phone.page, picture)
    context.close()


def busy_board(page: Page, served: Served, model: FakeModelServer, picture: Path) -> None:
    """Two answers run, one message waits, one turn has failed."""
    gate = Gate()
    model.script(Script(status=401))
    chat = ChatPage(page, served.url).open()
    chat.send("Translate the safety sheet into German")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    for question, word in (
        ("Compare the two tenders", "Both "),
        ("Summarise the minutes of Monday", "Three "),
    ):
        model.script(Script(tokens=[word, "of them."], gates={1: gate}))
        chat.open()
        chat.send(question)
        expect(chat.live).to_have_text(word.strip())
    chat.send("And who is to do what?")
    expect(chat.queued).to_have_count(1)
    page.goto(f"{served.url}/admin/board/")
    expect(page.get_by_role("cell", name="writing")).to_have_count(2, timeout=PATIENCE_MS)
    keep(page, picture)
    gate.release()


def take(folder: Path, chromium: str) -> None:
    """All pictures stand in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        FakeModelServer() as model,
        tempfile.TemporaryDirectory() as data,
        Served(Path(data), model.url, model=MODEL) as served,
        sync_playwright() as playwright,
    ):
        model.models, model.windows = [MODEL], {MODEL: 40_960}
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = enter(browser, served)
        chat = ChatPage(page, served.url)
        converse(chat, model)
        path = chat.wait_opened()
        coloured(page)
        keep(page, folder / "chat.png")
        on_a_phone(page, served, path, folder / "phone.png")
        session = path.strip("/").rpartition("/")[2]
        page.goto(f"{served.url}/admin/sessions_app/session/{session}/transcript/")
        expect(page.get_by_text(QUESTION).first).to_be_visible()
        keep(page, folder / "transcript.png")
        busy_board(page, served, model, folder / "board.png")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes the README's pictures.")
    parser.add_argument("--folder", type=Path, default=PICTURES)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    take(options.folder, options.chromium)


if __name__ == "__main__":
    main()
