"""The whole of the chat on a desk and on a phone, light and dark, and from right to left."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.wire import Wire

pytestmark = pytest.mark.browser

RICH: Final = (
    "## Heading\n\n| A | B |\n|:-|-:|\n| Fridge | 450 Wh |\n\n```python\ndef f(): pass\n```\n\n"
    "Per day $E = 972$.\n\n```mermaid\nflowchart LR\n  A[Panel] --> B[Battery]\n```\n\nEnd.\n"
)
RIGHT_TO_LEFT: Final = (
    "addEventListener('DOMContentLoaded', () => { document.documentElement.dir = 'rtl' })"
)
GROUND: Final = {"light": "rgb(252, 253, 253)", "dark": "rgb(18, 22, 23)"}
FACES: Final = [
    (1280, "light", "ltr"), (1280, "dark", "ltr"), (390, "light", "ltr"), (390, "dark", "ltr"),
    (1280, "dark", "rtl"), (390, "light", "rtl"),
]  # fmt: skip


class Face:
    """One tab, checked after every step: the page never scrolls sideways."""

    def __init__(self, chat: ChatPage, width: int) -> None:
        self.chat, self.phone = chat, width < 768

    def fits(self) -> None:
        page = self.chat.page
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0

    def row(self, path: str) -> Locator:
        return self.chat.page.locator(f'.session:has(a[href="{path}"])')

    def choose(self, path: str, entry: str) -> None:
        """An entry of the row's menu; on a phone the list is in its drawer."""
        drawer = self.chat.page.get_by_role("dialog", name="Conversations")
        if self.phone and not drawer.is_visible():
            self.chat.page.get_by_role("button", name="Show conversations").click()
            expect(drawer).to_be_visible()
        row = self.row(path)
        row.hover()
        row.get_by_role("button", name="More for").click()
        self.fits()
        self.chat.page.get_by_role("menuitem", name=entry).click()


@pytest.mark.parametrize(("width", "scheme", "direction"), FACES)
def test_it_does_everything_in_every_face(
    width: int,
    scheme: str,
    direction: str,
    visit: Callable[..., NewPage],
    wire: Wire,
    model: FakeModelServer,
) -> None:
    size, phone = {"width": width, "height": 844}, width < 768
    chat = visit(wire.url, viewport=size, color_scheme=scheme, has_touch=phone, is_mobile=phone)()
    if direction == "rtl":
        chat.page.add_init_script(RIGHT_TO_LEFT)
    chat.expected = ("net::ERR_", "WebSocket connection to")
    face = Face(chat.open(), width)
    assert chat.page.evaluate("getComputedStyle(document.documentElement).direction") == direction
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert chat.page.evaluate(ground) == GROUND[scheme]
    face.fits()
    answers(face, model)
    waits(face, model)
    goes_offline(face, wire, model)
    finds(face)
    keeps_order(face)


def answers(face: Face, model: FakeModelServer) -> None:
    chat = face.chat
    model.script(Script(reasoning=["Let me see."], tokens=[RICH]), Script(tokens=["Yes."]))
    chat.ask("Show me everything")
    answer = chat.answers.last
    expect(answer.get_by_role("region", name="Table")).to_be_visible()
    expect(answer.locator(".code-keyword").first).to_be_visible()
    expect(answer.locator(".maths .katex")).to_have_count(1)
    expect(answer.locator(".diagram img")).to_be_visible()
    wrap = answer.get_by_role("button", name="Wrap").first
    wrap.click()
    expect(wrap).to_have_attribute("aria-pressed", "true")
    thought = chat.page.get_by_text("Let me see.")
    expect(thought).to_be_hidden()
    chat.page.locator("summary").filter(has_text="Thought").click()
    expect(thought).to_be_visible()
    chat.ask("Is it warm?")
    chat.footers.last.get_by_role("button", name="Warm").click()
    expect(chat.footers.last).to_contain_text("Nothing had changed")
    face.fits()


def waits(face: Face, model: FakeModelServer) -> None:
    """A queue above the composer; the draft is kept over a reload."""
    chat, gate = face.chat, Gate()
    model.script(Script(tokens=["One ", "done."], gates={1: gate}), Script(tokens=["Two done."]))
    chat.send("One")
    expect(chat.live).to_have_text("One")
    chat.send("Two, first wording")
    chat.send("Never")
    expect(chat.queued).to_have_text(["Two, first wording", "Never"])
    queue = chat.part("queueItems")
    queue.get_by_role("button", name="Edit this message").first.click()
    edit = queue.get_by_role("textbox", name="Message")
    edit.fill("Two")
    edit.press("Enter")
    chat.page.get_by_role("button", name="Remove this message").nth(1).click()
    expect(chat.queued).to_have_text(["Two"])
    face.fits()
    chat.field.fill("Half a thought")
    chat.page.reload()
    expect(chat.field).to_have_value("Half a thought")
    expect(chat.queued).to_have_text(["Two"])
    chat.field.fill("")
    gate.release()
    expect(chat.footers).to_have_count(4)
    assert chat.texts()[-2:] == [("user", "Two"), ("answer", "Two done.")]


def goes_offline(face: Face, wire: Wire, model: FakeModelServer) -> None:
    chat = face.chat
    model.script(Script(tokens=["Sent after all."]))
    wire.cut()
    expect(chat.page.locator(".strip")).to_be_visible()
    chat.send("Kept")
    expect(chat.page.locator(".user[data-state=waiting]")).to_have_count(1)
    face.fits()
    wire.mend()
    expect(chat.footers).to_have_count(5)
    expect(chat.page.locator(".strip")).to_be_hidden()


def finds(face: Face) -> None:
    chat = face.chat
    chat.page.keyboard.press("Control+k")
    chat.page.keyboard.type("everything")
    expect(chat.page.get_by_role("option", name="Show me everything").first).to_be_visible()
    face.fits()
    chat.page.keyboard.press("Escape")
    expect(chat.page.get_by_role("dialog")).to_have_count(0)


def keeps_order(face: Face) -> None:
    """Rename, pin, archive and delete, each with its way back."""
    chat, path = face.chat, face.chat.wait_opened()
    undo = chat.page.get_by_role("button", name="Undo")
    face.choose(path, "Rename")
    chat.page.keyboard.type("Renamed")
    chat.page.keyboard.press("Enter")
    expect(face.row(path)).to_contain_text("Renamed")
    face.choose(path, "Pin")
    pinned = chat.page.locator(".group", has=chat.page.get_by_role("heading", name="Pinned"))
    expect(pinned.locator(f'a[href="{path}"]')).to_be_visible()
    face.choose(path, "Unpin")
    for entry in ("Archive", "Delete conversation"):
        face.choose(path, entry)
        expect(face.row(path)).to_have_count(0)
        face.fits()
        undo.click()
        expect(face.row(path)).to_have_count(1)
