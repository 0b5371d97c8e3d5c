"""`python -m bench.page [--chromium PATH]`: the chat in a browser with a long conversation.

5,000 messages, one of them with 400 KB of code; then an answer at 200 tokens a second while
somebody types; then 400 KB of code as an answer; then four ways to leave one and come back. The
figures are those of the page's own clock; a busy machine makes them worse. While they are taken,
elements are found by selectors: a search by role computes the whole page's names on the page's own
thread.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect, sync_playwright

from bench.table import Row, at_most, median, percentile, render
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import log_in
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Script
from tests.wire import Wire

MESSAGES: Final = 5_000
CODE_BYTES: Final = 400_000
TOKENS: Final = 2_000
FIELD: Final = "#message"
LINE: Final = "    total = total + measure(row, 17) # the same again\n"
OPENINGS: Final = 3
PAGES: Final = 10
PATIENCE_MS: Final = 120_000
USAGE: Final = {"prompt_tokens": 9_000, "completion_tokens": 100, "total_tokens": 9_100}

WATCH: Final = """
window.tasks = [];
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.tasks.push(duration);
}).observe({ type: "longtask", buffered: true });
window.typed = [];
addEventListener("keydown", ({ timeStamp }) => {
  requestAnimationFrame(() => setTimeout(() => window.typed.push(performance.now() - timeStamp)));
}, { capture: true });
// When the newest answer's row stood on the page for the first time.
window.opened = new Promise((resolve) => {
  const look = () => document.querySelectorAll(".row.answer .prose > *").length > 0
    ? resolve(performance.now()) : requestAnimationFrame(look);
  look();
});
"""

PAGE_UP: Final = """() => new Promise((resolve) => {
  const count = () => document.querySelectorAll(".row").length;
  const before = count(), began = performance.now();
  document.querySelector(".thread").scrollTop = 0;
  const look = () => count() >= before + 50
    ? setTimeout(() => resolve(performance.now() - began)) : requestAnimationFrame(look);
  look();
})"""


def rows(session: str) -> list[tuple[str, str, str]]:
    """All messages but those that the page itself sent."""
    found = []
    for number in range(MESSAGES // 2):
        text = f"Answer {number}: **words**, `code`, a list:\n\n- one\n- two\n\n```py\nx = 1\n```"
        if number == MESSAGES // 2 - 10:
            text = f"```py\n{LINE * (CODE_BYTES // len(LINE))}```"
        for kind, said in (("user", f"Question {number}?"), ("assistant", text)):
            found.append((session, kind, json.dumps([{"type": "text", "text": said}])))
    return found


def fill(database: Path, session: str) -> None:
    with sqlite3.connect(database, timeout=20) as connection:
        connection.executemany(
            "INSERT INTO sessions_app_message (session_id, kind, parts) VALUES (?, ?, ?)",
            rows(session),
        )
    connection.close()


def longest_task(page: Page) -> float:
    return float(page.evaluate("Math.max(0, ...window.tasks.splice(0))"))


def opening(page: Page, address: str) -> list[Row]:
    times, tasks = [], []
    for _ in range(OPENINGS):
        page.goto(address)
        times.append(float(page.evaluate("window.opened")))
        page.wait_for_load_state("networkidle")
        tasks.append(longest_task(page))
    return [
        at_most(f"open a conversation of {MESSAGES:,} messages", 1000, median(times), " ms"),
        at_most("longest task while it opens", 200, median(tasks), " ms"),
    ]


def settle(chat: ChatPage, model: FakeModelServer) -> list[Row]:
    """The first turn after another writer's thousands of rows announces them all: not timed."""
    address = chat.page.url
    model.script(Script(tokens=["Read."], usage=USAGE))
    chat.send("Read them")
    model.request_sync(1)
    chat.page.goto("about:blank")
    chat.page.goto(address)
    expect(chat.answers.last).to_have_text("Read.", timeout=PATIENCE_MS)
    for _ in range(PAGES):
        chat.page.evaluate(PAGE_UP)
    chat.page.get_by_role("button", name="Go to the newest message").click()
    return []


def paging(page: Page) -> list[Row]:
    """Up through the conversation, a page of rows at a time."""
    times = [float(page.evaluate(PAGE_UP)) for _ in range(PAGES)]
    return [at_most("50 older rows, until they stand there", 500, percentile(times, 0.95), " ms")]


def streaming(chat: ChatPage, model: FakeModelServer) -> list[Row]:
    """200 tokens a second into a conversation with many rows on the page, while somebody types."""
    page = chat.page
    words = [f"word{number} " + ("\n\n" if number % 60 == 59 else "") for number in range(TOKENS)]
    model.script(Script(tokens=words, token_delay_s=1 / 200, usage=USAGE))
    chat.send("Stream")
    expect(chat.live).to_be_visible(timeout=PATIENCE_MS)
    longest_task(page)
    page.evaluate("window.typed.length = 0")
    page.locator(FIELD).press_sequentially("Somebody types while the answer comes. " * 2, delay=60)
    expect(chat.live).to_have_count(0, timeout=PATIENCE_MS)
    typed = [float(one) for one in page.evaluate("window.typed")]
    chat.field.fill("")
    return [
        at_most("key to painted letter at 200 tokens/s, p95", 50, percentile(typed, 0.95), " ms"),
        at_most("longest task at 200 tokens/s", 200, longest_task(page), " ms"),
    ]


def long_code(chat: ChatPage, model: FakeModelServer) -> list[Row]:
    """400 KB of code as fast as they come; a finished block's buttons work meanwhile."""
    page = chat.page
    lines = ["```py\nx = 1\n```\n\n```py\n", *[LINE * 4] * (CODE_BYTES // len(LINE) // 4), "```\n"]
    model.script(Script(tokens=lines, token_delay_s=0.002, usage=USAGE))
    longest_task(page)
    chat.send("Code")
    expect(chat.live.locator(".code")).to_have_count(2, timeout=PATIENCE_MS)
    chat.live.locator('.code [data-part="wrap"]').first.click(timeout=2000)
    expect(chat.live).to_have_count(0, timeout=PATIENCE_MS)
    written = longest_task(page)
    block = chat.answers.last.locator(".code").last
    block.locator('[data-part="colour"]').click()
    expect(block.locator(".code-number")).to_have_count(CODE_BYTES // len(LINE) // 4 * 4)
    return [
        at_most("longest task while 400 KB of code come", 200, written, " ms"),
        at_most("longest task while they are coloured", 200, longest_task(page), " ms"),
    ]


GROWING: Final = """(since) => new Promise((resolve) => {
  let seen = null;
  const look = () => {
    const text = document.querySelector(".live .prose")?.textContent.length ?? 0;
    if (seen !== null && text > seen) return resolve(performance.now() - (since ?? 0));
    if (text > 0) seen ??= text;
    requestAnimationFrame(look);
  };
  look();
})"""
"""Milliseconds from an instant of the page's clock (its navigation, without one) to new text."""


def reload(chat: ChatPage, _: Wire) -> tuple[ChatPage, float]:
    chat.page.reload()
    return chat, chat.page.evaluate(GROWING)


def switch(chat: ChatPage, _: Wire) -> tuple[ChatPage, float]:
    chat.page.get_by_role("button", name="New chat").first.click()
    expect(chat.answers).to_have_count(0)
    back = f"() => {{ const now = performance.now(); history.back(); return ({GROWING})(now); }}"
    return chat, chat.page.evaluate(back)


def offline(chat: ChatPage, wire: Wire) -> tuple[ChatPage, float]:
    """Cut off for 20 s; from the network's return."""
    wire.cut()
    chat.page.wait_for_timeout(20_000)
    wire.mend()
    again = (
        "() => { const now = performance.now(); dispatchEvent(new Event('online'));"
        f" return ({GROWING})(now); }}"
    )
    return chat, chat.page.evaluate(again)


def elsewhere(chat: ChatPage, _: Wire) -> tuple[ChatPage, float]:
    context, address = chat.page.context, chat.page.url
    chat.page.close()
    page = context.new_page()
    page.goto(address)
    return ChatPage(page, chat.base_url), page.evaluate(GROWING)


LEAVES: Final = {
    "reload amid an answer, until it grows again": reload,
    "another conversation and back": switch,
    "20 s without a network, from its return": offline,
    "tab closed, opened elsewhere": elsewhere,
}


def returning(chat: ChatPage, wire: Wire, model: FakeModelServer) -> list[Row]:
    """One answer for each way of leaving it."""
    words = [f"word{number} " for number in range(8_000)]
    found = []
    for what, leave in LEAVES.items():
        model.script(Script(tokens=words, token_delay_s=1 / 200, usage=USAGE))
        chat.send("Go on")
        expect(chat.live).to_contain_text("word200")
        chat, grown = leave(chat, wire)
        found.append(at_most(what, 1000, float(grown), " ms"))
        chat.page.get_by_role("button", name="Stop").click()
        expect(chat.live).to_have_count(0)
    return found


def measure(chromium: str) -> list[Row]:
    with (
        FakeModelServer() as model,
        tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder,
        Served(Path(folder), model.url) as served,
        Wire(served.port) as wire,
        sync_playwright() as playwright,
    ):
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.add_init_script(WATCH)
        log_in(context, wire.url)
        chat = ChatPage(context.new_page(), wire.url).open()
        chat.ask("Begin")
        path = chat.wait_opened()
        fill(served.database, path.strip("/").rpartition("/")[2].replace("-", ""))
        stages: list[Callable[[], list[Row]]] = [
            lambda: opening(chat.page, wire.url + path),
            lambda: paging(chat.page),
            lambda: settle(chat, model),
            lambda: streaming(chat, model),
            lambda: long_code(chat, model),
            lambda: returning(chat.open(path), wire, model),
        ]
        found = []
        for stage in stages:
            rows_of_stage = stage()
            sys.stderr.write("".join(f"{row.what}: {row.measured}\n" for row in rows_of_stage))
            found += rows_of_stage
        browser.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    found = measure(parser.parse_args().chromium)
    sys.stdout.write(render(found) + "\n")
    return 0 if all(row.held for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
