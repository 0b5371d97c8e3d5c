"""What an answer may hold beside words: tables, code, formulas, diagrams, images."""

from typing import Final

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser

PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42"
    "mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FLOWCHART: Final = "```mermaid\nflowchart LR\n  A[Panel] --> B[Battery]\n```\n"


def answer(chat: ChatPage, model: FakeModelServer, text: str) -> Locator:
    """The answer `text` to a new question, in pieces of seven characters."""
    model.script(Script(tokens=[text[at : at + 7] for at in range(0, len(text), 7)]))
    chat.ask("Show me")
    return chat.answers.last


def test_it_aligns_a_table_by_class_in_a_box_that_scrolls(
    chat: ChatPage, model: FakeModelServer
) -> None:
    wide = " | ".join(["A wide heading without a break"] * 12)
    prose = answer(chat, model, f"| Load | {wide} |\n|:--|{'--:|' * 12}\n| Fridge |{' 1 |' * 12}\n")
    box = prose.get_by_role("region", name="Table")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    assert box.get_attribute("tabindex") == "0"
    cell = box.locator("td").nth(1)
    assert cell.evaluate("cell => getComputedStyle(cell).textAlign") == "end"
    assert cell.get_attribute("style") is None
    page = chat.page.locator("body")
    assert page.evaluate("body => body.scrollWidth <= innerWidth")


def test_it_colours_code_once_its_fence_is_closed(chat: ChatPage, model: FakeModelServer) -> None:
    gate = Gate()
    model.script(Script(tokens=["```py\ndef f():\n", "    pass\n```\n"], gates={1: gate}))
    chat.send("Show me")
    code = chat.page.locator(".code")
    expect(code.locator("code")).to_have_text("def f():")
    assert code.locator("[class^=code-]").count() == 0
    gate.release()
    expect(code.locator(".code-keyword")).to_have_text(["def", "pass"])
    expect(code.locator(".code-function")).to_have_text("f")
    expect(code.locator("figcaption")).to_contain_text("Python")
    assert code.locator("code").evaluate("code => code.textContent") == "def f():\n    pass\n"


def test_it_copies_code_as_it_was_written(new_page: NewPage, model: FakeModelServer) -> None:
    chat = new_page().open_with_clock()
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    lines = "".join(f"row {number} <b>&amp;\n" for number in range(450))
    prose = answer(chat, model, f"```\n{lines}```\n")
    chat.hold_clock()
    prose.get_by_role("button", name="Copy").click()
    expect(prose.get_by_role("button", name="Copied")).to_be_visible()
    chat.page.clock.resume()
    assert chat.page.evaluate("navigator.clipboard.readText()") == lines
    expect(prose.get_by_role("button", name="Copy", exact=True)).to_be_visible()
    selected = prose.locator("code").evaluate(
        "code => { getSelection().selectAllChildren(code); return getSelection().toString() }"
    )
    assert selected.rstrip("\n") == lines.rstrip("\n")


def test_it_wraps_long_lines_of_code_on_demand(chat: ChatPage, model: FakeModelServer) -> None:
    prose = answer(chat, model, f"```\n{'word ' * 200}\n```\n")
    box = prose.locator("pre")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    wrap = prose.get_by_role("button", name="Wrap")
    wrap.click()
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert wrap.get_attribute("aria-pressed") == "true"


def test_it_colours_long_code_on_demand(chat: ChatPage, model: FakeModelServer) -> None:
    code = "x = 1  # one\n" * 5000
    model.script(Script(tokens=[f"```python\n{code}```\n"]))
    chat.ask("Show me")
    highlight = chat.answers.get_by_role("button", name="Highlight")
    expect(highlight).to_be_visible()
    assert chat.answers.locator("[class^=code-]").count() == 0
    highlight.click()
    expect(chat.answers.locator(".code-number")).to_have_count(5000)
    expect(highlight).to_be_hidden()
    assert chat.answers.locator("code").evaluate("code => code.textContent") == code


def test_it_draws_formulas(chat: ChatPage, model: FakeModelServer) -> None:
    text = "Per day $E = 972$, or \\(x^2\\).\n\n$$\nC = \\frac{E}{2}\n$$\n\n\\[ y \\]\n"
    prose = answer(chat, model, text)
    expect(prose.locator(".maths .katex")).to_have_count(4)
    expect(prose.locator(".maths.display .katex-display")).to_have_count(2)
    expect(prose.locator("math annotation").first).to_have_text("E = 972")
    chat.page.reload()
    expect(chat.answers.locator(".maths .katex")).to_have_count(4)


def test_it_leaves_prices_and_broken_formulas_as_they_were_written(
    chat: ChatPage, model: FakeModelServer
) -> None:
    text = "From $5 to $10, or US$6 and 7$8. Broken: $\\frac{$ and $\\nosuch$. `$a$` \\$b\\$"
    prose = answer(chat, model, f"{text}\n\n$x$")
    expect(prose.locator("p").nth(1).locator(".katex")).to_be_visible()
    assert prose.locator("p").first.inner_text() == (
        "From $5 to $10, or US$6 and 7$8. Broken: $\\frac{$ and $\\nosuch$. $a$ $b$"
    )


def test_it_draws_a_diagram_and_keeps_its_source(chat: ChatPage, model: FakeModelServer) -> None:
    gate = Gate()
    model.script(Script(tokens=[FLOWCHART[:40], FLOWCHART[40:], "After"], gates={1: gate}))
    chat.send("Draw")
    source = chat.page.locator(".diagram .code")
    expect(source).to_contain_text("flowchart LR")
    assert chat.page.locator(".drawing-frame").count() == 0
    gate.release()
    picture = chat.page.locator(".diagram img")
    expect(picture).to_be_visible()
    assert picture.evaluate("img => img.decode().then(() => img.naturalWidth)") > 150
    assert (picture.get_attribute("src") or "").startswith("blob:")
    expect(source).to_be_hidden()
    chat.page.locator(".diagram summary").click()
    expect(source).to_contain_text("A[Panel] --> B[Battery]")


def test_it_draws_a_diagram_once_and_again_on_another_ground(
    chat: ChatPage, model: FakeModelServer
) -> None:
    answer(chat, model, FLOWCHART)
    picture = chat.page.locator(".diagram img")
    expect(picture).to_be_visible()
    first = picture.get_attribute("src")
    model.script(Script(tokens=["More."]))
    chat.ask("More")
    assert picture.get_attribute("src") == first
    chat.page.emulate_media(color_scheme="dark")
    expect(picture).not_to_have_attribute("src", first or "")


@pytest.mark.parametrize(
    "source",
    [
        "flowchart LR\n  A --> --> [",
        "nosuch\n  a",
        "mindmap\n  root\n    leaf",
        "a" * 30_000,
    ],
)
def test_it_shows_the_source_of_a_diagram_it_cannot_draw(
    chat: ChatPage, model: FakeModelServer, source: str
) -> None:
    model.script(Script(tokens=[f"```mermaid\n{source}\n```\n"]))
    chat.ask("Draw")
    expect(chat.page.get_by_text("This diagram could not be drawn.")).to_be_visible()
    expect(chat.page.locator(".diagram .code")).to_be_visible()
    expect(chat.page.locator(".diagram img")).to_be_hidden()


@pytest.mark.parametrize(
    "source",
    [
        "sequenceDiagram\n  A->>B: Hi",
        "gantt\n  dateFormat YYYY-MM-DD\n  section S\n  Task :a1, 2026-01-01, 3d",
        "stateDiagram-v2\n  [*] --> Still",
        "classDiagram\n  Animal <|-- Duck",
        "erDiagram\n  A ||--o{ B : has",
        'pie\n  "a" : 1\n  "b" : 2',
        "gitGraph\n  commit\n  branch b\n  commit",
        "timeline\n  2020 : one",
        "journey\n  section Go\n    Walk: 5: Me",
    ],
    ids=lambda source: source.split()[0],
)
def test_it_draws_each_kind_of_diagram(chat: ChatPage, model: FakeModelServer, source: str) -> None:
    answer(chat, model, f"```mermaid\n{source}\n```\n")
    expect(chat.page.locator(".diagram img")).to_be_visible()


def test_it_asks_for_no_image_that_does_not_carry_its_own_bytes(
    chat: ChatPage, model: FakeModelServer
) -> None:
    asked: list[str] = []
    chat.page.on("request", lambda request: asked.append(request.url))
    prose = answer(
        chat,
        model,
        f"![pixel](data:image/png;base64,{PIXEL})\n\n![roof](https://example.org/a.png)",
    )
    image = prose.get_by_role("img", name="pixel")
    assert image.evaluate("img => img.decode().then(() => img.naturalWidth)") == 1
    link = prose.get_by_role("link", name="roof, example.org")
    assert link.get_attribute("target") == "_blank"
    assert prose.locator("img").count() == 1
    assert not [url for url in asked if not url.startswith((chat.base_url, "data:"))]


def test_it_asks_for_another_answer_to_the_newest_message_only(
    chat: ChatPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["First."]), Script(tokens=["Second."]), Script(tokens=["Third."]))
    chat.ask("One")
    chat.ask("Two")
    again = chat.page.get_by_role("button", name="Answer again")
    expect(again).to_have_count(1)
    again.click()
    expect(chat.answers).to_have_text(["First.", "Third."])
    expect(chat.footers).to_have_count(2)
    chat.page.reload()
    expect(chat.answers).to_have_text(["First.", "Third."])
    assert [text for kind, text in chat.texts() if kind == "user"] == ["One", "Two"]
