"""An answer that came in whatever pieces has the nodes that its whole text gives, byte for byte."""

from typing import Final

import pytest

from tests.browser.chat_page import ChatPage
from tests.browser.hostile import ANSWERS

pytestmark = pytest.mark.browser

STEADY: Final = {
    "tight": "".join(f"- item {at} with **some** words\n" for at in range(60)),
    "loose": "".join(f"{at}. item {at}\n\n   more of `it`\n\n" for at in range(10, 40)),
    "nested": "".join(
        f"* item {at}\n  1. sub\n     - leaf\n     - [x] done\n  2. sub\n" for at in range(25)
    ),
    "code": "".join(
        f"- step {at}\n\n  ```sh\n  run {at}\n\n  again\n  ```\n\n" for at in range(20)
    ),
    "table": "| a | b |\n|:-|-:|\n" + "".join(f"| {at} | `x` and *y* |\n" for at in range(60)),
}
OTHERS: Final = [
    "- a\n- b\n- c\n\n- d\n- e\n\n  - f\n  - g\n\n    h\n- i\n\nAfter.",
    "- root\n  - one\n    - leaf\n  - two\n    > said\n    more\n  - three\n\nEnd\n===\n",
    "1. a\n2. b\n1) c\n2) d\n\n    code\n\n- x\n- - -\n- y\n---\n* z\n",
    "> - a\n> - b\n>\n> c\n> > d\ne\n\nf\n- g\n| h | i |\n|-|-|\n| j | k |\n| l\n\nm",
    "- [one]: see [x] and [y][x]\n- b\n\n  [x]: https://example.org/\n- c [x]\n\n[one]: https://e.org\n",
    "- $$\n  a\n  $$\n- $b$\n- \\[\n- c\n\n$$\n- d\n- e\n$$\n",
    "- `a\n- b`\n- **c\n- d**\n- e\\\n- ![f](https://e.org/p.png)\n- <b>g</b>\n-\n-\n  h\n",
]
LONG: Final = "Some words.\n\n" + "".join(
    f"- item {at}\n" if at < 950 else f"\npart *{at}*\n" for at in range(1000)
)
IMPORT: Final = """
  const names = performance.getEntriesByType("resource").map(({ name }) => name);
  const { Prose } = await import(names.find((name) => /\\/js\\/prose(\\.\\w+)?\\.js$/.test(name)));
"""
# With a seed, so that the pieces are the same in every run.
GROW: Final = (
    f"async (texts) => {{{IMPORT}"
    """
  performance.now = () => 0; // nothing costs time, so that nothing is drawn later
  let state = 1;
  const next = () => (state = (state * 1664525 + 1013904223) % 2 ** 32) / 2 ** 32;
  const rows = (prose) => [...prose.element.firstElementChild?.querySelectorAll(
    ":scope > li, :scope > table > tbody > tr") ?? []];
  return texts.map((text) => [1, 3, 40, 400].map((step) => {
    const grown = new Prose(), whole = new Prose();
    let finished = [], lost = 0;
    for (let end = 0; end < text.length; ) {
      end = Math.min(text.length, end + 1 + Math.floor(next() * step));
      grown.update(text.slice(0, end), true);
      const now = rows(grown);
      lost += finished.filter((row, at) => row !== now[at]).length;
      finished = now.slice(0, -2);
    }
    grown.update(text, false);
    whole.update(text, false);
    const settled = rows(grown);
    lost += finished.filter((row, at) => row !== settled[at]).length;
    return [grown.element.innerHTML, whole.element.innerHTML, lost];
  }));
}"""
)
# By a clock that makes every step of drawing a slice of its own.
SLICES: Final = (
    f"async ([text, other]) => {{{IMPORT}"
    """
  let now = 0;
  performance.now = () => now;
  const whole = new Prose(), sliced = new Prose(), overtaken = new Prose();
  whole.update(text, false);
  performance.now = () => (now += 1000);
  sliced.update(text, false);
  overtaken.update(text, false);
  const first = sliced.element.children.length;
  overtaken.update(other, false);
  const passed = [];
  while (sliced.element.innerHTML !== whole.element.innerHTML && passed.length < 2000) {
    await new Promise((resolve) => setTimeout(resolve));
    passed.push(sliced.element.querySelectorAll("li").length);
  }
  return [first, [...new Set(passed)], passed.length, overtaken.element.textContent.trim()];
}"""
)


@pytest.mark.parametrize("name", STEADY)
def test_it_keeps_the_nodes_of_what_is_finished(chat: ChatPage, name: str) -> None:
    """All but the last two: the last is being written, the one before it was until now."""
    for grown, whole, lost in chat.page.evaluate(GROW, [STEADY[name]])[0]:
        assert grown == whole
        assert lost == 0


def test_it_ends_as_the_whole_text_does(chat: ChatPage) -> None:
    texts = [*OTHERS, *[text for text in ANSWERS if len(text) < 1000]]
    for text, found in zip(texts, chat.page.evaluate(GROW, texts), strict=True):
        for grown, whole, _ in found:
            assert grown == whole, text


def test_it_draws_a_long_answer_in_slices(chat: ChatPage) -> None:
    first, items, slices, overtaken = chat.page.evaluate(SLICES, [LONG, "Other."])
    assert first == 1
    assert items == [*range(100, 950, 100), 950]
    assert slices < 200
    assert overtaken == "Other."
