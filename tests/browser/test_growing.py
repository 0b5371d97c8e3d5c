"""An answer while it grows: what stands there stays, and what is read does not move."""

import re
from typing import Final

import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat_page import ChatPage
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser

ROWS: Final = "".join(f"| {number} | word |\n" for number in range(40))
DIAGRAM: Final = "```mermaid\nflowchart TD\n  A --> B\n  B --> C\n  C --> D\n```\n\n"
READ: Final = "The paragraph that is read."
COUNT_ITEMS: Final = """() => {
  window.added = 0;
  new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        const inside = node.querySelectorAll?.("li").length ?? 0;
        window.added += inside + Number(node.nodeName === "LI");
      }
    }
  }).observe(document.querySelector(".items"), { childList: true, subtree: true });
}"""
DRAWN: Final = "async (one) => { await one.decode(); await new Promise(requestAnimationFrame) }"
GROWN: Final = """() => {
  const prose = document.querySelector(".answer .prose");
  new MutationObserver(() => {
    if (prose.textContent.includes("650 bold") && prose.closest(".live")) {
      window.kept ??= prose.querySelector("strong").mark ?? 0;
    }
  }).observe(prose, { childList: true, subtree: true });
}"""
MARK: Final = "all => all.forEach((one, at) => { one.mark = at })"
MARKS: Final = "all => all.map(one => one.mark ?? null)"


@pytest.mark.parametrize(
    ("begin", "more", "each"),
    [
        ("- one\n- two\n- three", " and\n- four\n", "li"),
        (f"| n | w |\n|-|-|\n{ROWS}", "| last | one |\n", "tbody tr"),
    ],
    ids=["list", "table"],
)
def test_it_leaves_the_rows_that_stand_there_while_more_come(
    chat: ChatPage, model: FakeModelServer, begin: str, more: str, each: str
) -> None:
    gate = Gate()
    model.script(Script(tokens=[begin, more], gates={1: gate}))
    chat.send("Count")
    rows = chat.answers.locator(each)
    expect(rows).to_have_count(begin.count("\n") + (1 if each == "li" else -2))
    rows.evaluate_all(MARK)
    marked = rows.evaluate_all(MARKS)
    gate.release()
    expect(chat.footers).to_have_count(1)
    kept = marked[:-1] if each == "li" else marked
    assert rows.evaluate_all(MARKS) == [*kept, *[None] * (rows.count() - len(kept))]


def test_it_draws_a_list_anew_where_it_becomes_another_one(
    chat: ChatPage, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=["- one\n- two\n", "\n- three\n"], gates={1: gate}))
    chat.send("Count")
    expect(chat.answers.locator("li > p")).to_have_count(0)
    expect(chat.answers.locator("li")).to_have_count(2)
    gate.release()
    expect(chat.answers.locator("li > p")).to_have_text(["one", "two", "three"])


def test_it_adds_each_item_of_a_very_long_list_once(chat: ChatPage, model: FakeModelServer) -> None:
    items = [f"- item {number} with **some** words\n" * 10 for number in range(100)]
    model.script(Script(tokens=items, token_delay_s=0.01))
    chat.page.evaluate(COUNT_ITEMS)
    chat.send("List them")
    expect(chat.footers).to_have_count(1)
    expect(chat.answers.locator("li")).to_have_count(1000)
    # beside its own coming, an item is drawn again only while it is the last one
    assert 1000 <= chat.page.evaluate("window.added") < 1000 + 2 * len(items)


def test_it_keeps_what_is_read_in_place_when_a_diagram_is_drawn_above_it(
    chat: ChatPage, model: FakeModelServer
) -> None:
    held: list[Route] = []
    chat.page.route("**/diagram/", lambda route: held.append(route))
    text = f"{DIAGRAM}{'Words before. ' * 30}\n\n{READ}\n\n" + "Words after.\n\n" * 60
    model.script(Script(tokens=[text]))
    with chat.page.expect_request("**/diagram/"):
        chat.ask("Draw")
    read = chat.page.get_by_text(READ)
    read.evaluate("e => e.scrollIntoView({ block: 'start' })")
    expect(chat.part("toEnd")).to_be_visible()
    before = read.bounding_box()
    held[0].continue_()
    picture = chat.page.locator(".diagram img")
    expect(picture).to_have_attribute("src", re.compile("^blob:"))
    picture.evaluate(DRAWN)
    after = read.bounding_box()
    assert before is not None and after is not None
    assert abs(before["y"] - after["y"]) < 2


@pytest.mark.parametrize("mark", ["", "> ", "> > "], ids=["paragraph", "quote", "nested"])
def test_it_leaves_what_stands_there_of_a_long_block_and_ends_like_an_undisturbed_one(
    chat: ChatPage, model: FakeModelServer, mark: str
) -> None:
    gate, last = Gate(), Gate()
    lines = [f"{mark}{number} **bold** words, `code` & more of them\n" for number in range(700)]
    begin, more = "".join(lines[:600]), lines[600:]
    model.script(Script(tokens=[begin[:15_000], begin[15_000:], *more], gates={2: gate, 80: last}))
    chat.send("Go on")
    first = chat.answers.locator("strong").first
    expect(chat.answers).to_contain_text("599 bold")
    first.evaluate("one => { one.mark = 1 }")
    chat.page.evaluate(GROWN)
    gate.release()
    expect(chat.live).to_contain_text("675 bold")
    last.release()
    expect(chat.footers).to_have_count(1)
    assert chat.page.evaluate("window.kept") == 1
    grown = chat.answers.evaluate("prose => prose.innerHTML")
    chat.page.reload()
    expect(chat.answers).to_contain_text("699 bold")
    assert chat.answers.evaluate("prose => prose.innerHTML") == grown
