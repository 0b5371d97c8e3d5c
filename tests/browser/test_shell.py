"""What stands round a conversation: links, find, keys, settings, the first page."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import PASSWORD, Served
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser


def test_it_leads_a_link_through_the_login_and_back(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Behind the login."]))
    chat.ask("A link to keep")
    path = chat.wait_opened()
    chat.page.context.clear_cookies()
    chat.expected = ("WebSocket",)
    chat.page.goto(chat.base_url + path.rstrip("/"))
    chat.page.get_by_label("Username").fill("admin")
    chat.page.get_by_label("Password").fill(PASSWORD)
    chat.page.get_by_role("button", name="Log in").click()
    chat.page.wait_for_url(f"**{path}")
    expect(chat.answers).to_have_text("Behind the login.")


def test_it_looks_finished_before_its_scripts_came(chat: ChatPage) -> None:
    chat.expected = ("ERR_FAILED",)
    chat.page.route("**/*.js", lambda route: route.abort())
    chat.page.goto(chat.base_url)
    send = chat.part("send").bounding_box()
    assert send is not None
    assert send["width"] == send["height"]
    for key in chat.page.locator(".side kbd").all():
        expect(key).to_be_hidden()


def test_it_copies_the_link_and_the_last_answer(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    chat = visit(served.url, permissions=["clipboard-read", "clipboard-write"])().open()
    model.script(Script(tokens=["To be ", "**copied**."]))
    chat.ask("Copy me")
    path = chat.wait_opened()
    chat.page.get_by_role("button", name="Copy link").click()
    expect(chat.part("toastText")).to_have_text("Link copied")
    assert chat.page.evaluate("navigator.clipboard.readText()") == chat.base_url + path
    chat.field.press("Control+Shift+C")
    expect(chat.part("toastText")).to_have_text("Answer copied")
    assert chat.page.evaluate("navigator.clipboard.readText()") == "To be **copied**."


def test_it_keeps_undo_in_its_box_when_a_title_has_no_blank(
    chat: ChatPage, model: FakeModelServer
) -> None:
    chat.ask("https://example.org/" + "x" * 200)
    chat.page.get_by_role("button", name="More for this conversation").click()
    chat.page.get_by_role("menuitem", name="Delete conversation").click()
    expect(chat.part("toastUndo")).to_be_visible()
    box, undo = chat.part("toast").bounding_box(), chat.part("toastUndo").bounding_box()
    assert box is not None
    assert undo is not None
    assert undo["x"] + undo["width"] <= box["x"] + box["width"]


def test_it_says_who_answers_and_when_it_does(chat: ChatPage, model: FakeModelServer) -> None:
    gate = Gate()
    model.script(Script(tokens=["One ", "two"], gates={1: gate}))
    who = chat.part("who")
    chat.send("Go")
    expect(who).to_have_text("Assistant is answering")
    gate.release()
    expect(who).to_have_text("Assistant")


def test_it_finds_in_the_conversation(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["A needle, and another Needle."]))
    chat.ask("Where is the needle?")
    chat.page.keyboard.press("Control+Shift+F")
    field = chat.page.get_by_role("textbox", name="Find in this conversation")
    expect(field).to_be_focused()
    chat.page.keyboard.type("needle")
    count = chat.part("findCount")
    expect(count).to_have_text("1 of 3")
    chat.page.keyboard.press("Enter")
    expect(count).to_have_text("2 of 3")
    chat.page.keyboard.press("Shift+Enter")
    chat.page.keyboard.press("Shift+Enter")
    expect(count).to_have_text("3 of 3")
    painted = "[...CSS.highlights.get('found')].map(range => range.toString())"
    assert chat.page.evaluate(painted) == ["needle", "needle", "Needle"]
    field.fill("nothing like it")
    expect(count).to_have_text("No match")
    chat.page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    expect(chat.field).to_be_focused()
    assert chat.page.evaluate("CSS.highlights.size") == 0


def test_it_walks_through_messages(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["The answer."]))
    chat.ask("The question")
    focused = "document.activeElement.closest('.row')?.className ?? document.activeElement.id"
    seen = []
    for key in ("Alt+ArrowUp", "Alt+ArrowUp", "Alt+ArrowUp", "Alt+ArrowDown", "Alt+ArrowDown"):
        chat.page.keyboard.press(key)
        seen.append(chat.page.evaluate(focused).removeprefix("row "))
    assert [name.split()[0] for name in seen] == ["answer", "user", "user", "answer", "message"]


def test_it_lists_its_shortcuts(chat: ChatPage) -> None:
    chat.page.keyboard.press("Control+/")
    sheet = chat.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_text("Ctrl Shift F")).to_be_visible()
    chat.page.keyboard.press("Control+Shift+O")
    expect(sheet).to_be_visible()
    sheet.get_by_role("button", name="Close").click()
    expect(chat.field).to_be_focused()


def test_it_swaps_what_enter_does(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.page.get_by_role("button", name="Settings and account").click()
    chat.page.get_by_role("radio", name="Enter breaks the line, Shift Enter sends").check()
    chat.page.get_by_role("button", name="Close").click()
    chat.page.reload()
    chat.wait_connected()
    chat.field.press_sequentially("One")
    chat.field.press("Enter")
    chat.field.press_sequentially("Two")
    chat.field.press("Shift+Enter")
    expect(chat.footers).to_have_count(1)
    assert chat.bubbles.inner_text() == "One\nTwo"


def test_it_rings_the_messages_for_keys_alone(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Read me."]))
    chat.ask("Something to read")
    thread = chat.part("thread")
    ring = "e => e === document.activeElement && getComputedStyle(e).outlineStyle"
    chat.answers.click()
    chat.page.keyboard.press("PageUp")
    assert thread.evaluate(ring) == "none"
    chat.field.focus()
    chat.page.keyboard.press("Shift+Tab")
    thread.focus()
    assert thread.evaluate(ring) == "solid"


def speak_german(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name="Settings and account").click()
    chat.page.get_by_label("Language").select_option("Deutsch")
    chat.page.get_by_role("button", name="Use", exact=True).click()


def test_it_speaks_the_language_that_was_chosen(
    visit: Callable[..., NewPage], served: Served
) -> None:
    chat = visit(served.url)().open()
    speak_german(chat)
    expect(chat.page.get_by_role("button", name="Neuer Chat")).to_be_visible()
    expect(chat.page.locator("html")).to_have_attribute("lang", "de")
    expect(chat.part("searchOpen").locator("kbd")).to_have_text("Strg K")


def test_it_says_in_that_language_what_the_server_says(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    """What was stored while an English page was open is shown in German as well."""
    chat = visit(served.url)().open()
    model.script(Script(status=401), Script(status=401))
    chat.send("Try")
    notices = chat.page.locator(".notice[data-state=failed]")
    expect(notices).to_contain_text("did not accept the key. Your message is kept.")
    speak_german(chat)
    german = re.compile("^Der Modellanbieter nahm den Schlüssel nicht an. Ihre Nachricht bleibt")
    expect(notices.locator("[data-part=text]")).to_have_text(german)
    chat.page.get_by_role("button", name="Nochmals versuchen").first.click()
    expect(chat.part("alert")).to_have_text(german)
    expect(notices.locator("[data-part=text]")).to_have_text(german)


def test_it_begins_a_message_from_a_suggestion(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name="Explain a piece of code").click()
    expect(chat.field).to_be_focused()
    expect(chat.field).to_have_value("Explain this code step by step:\n\n")


@pytest.mark.parametrize(("width", "rtl"), [(320, False), (390, True), (640, False), (1280, True)])
def test_it_fits_any_width_and_direction(
    width: int, rtl: bool, visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    """640 px are what 1280 leave at a zoom of 200 %."""
    phone = width < 768
    size = {"width": width, "height": 640}
    chat = visit(served.url, viewport=size, has_touch=phone, is_mobile=phone)().open()
    model.script(Script(tokens=["Yes."]))
    if rtl:
        chat.page.evaluate("document.documentElement.dir = 'rtl'")

    def fits(selector: str = "html") -> None:
        box = chat.page.locator(selector)
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0, selector
        edges = box.evaluate(
            "e => { const b = e.getBoundingClientRect(); return [b.left, b.right] }"
        )
        assert edges[0] >= 0 and edges[1] <= width, (selector, edges)

    fits()
    fits(".welcome")
    chat.ask("w" * 200)
    fits()
    chat.page.keyboard.press("Control+k")
    fits(".palette")
    chat.page.keyboard.press("Escape")
    chat.page.keyboard.press("Control+/")
    fits("[data-part=keysSheet]")
    chat.page.keyboard.press("Escape")
    chat.page.keyboard.press("Control+Shift+F")
    fits(".find")
    if phone:
        small = chat.page.locator(".head button:visible, .find button:visible")
        for button in small.all():
            box = button.bounding_box()
            assert box is not None and min(box["width"], box["height"]) >= 43.5
