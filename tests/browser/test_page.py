"""The page around the conversation: list, titles, drafts, keys, phones."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser

NAME_OF_FOCUSED = """() => {
  const focused = document.activeElement;
  if (focused === document.body) return "BODY";
  return focused.ariaLabel || focused.innerText?.trim().split("\\n")[0] || focused.tagName;
}"""

PASTE = """(field, text) => {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}"""

WIDE_TEXT = (
    "| a column | another column | a third column | and a fourth |\n|-|-|-|-|\n"
    "| " + "x" * 60 + " | y | z | 1 |\n\n```\n" + "word " * 60 + "\n```\n\n" + "w" * 200
)


def test_it_greets_and_fills_the_list(chat: ChatPage, model: FakeModelServer) -> None:
    expect(
        chat.page.get_by_role("heading", name="Hello admin, what shall we look at?")
    ).to_be_visible()
    expect(chat.field).to_be_focused()
    model.script(Script(tokens=["Yes."]))
    chat.ask("A first question")
    path = chat.wait_opened()
    row = chat.page.locator(".session").filter(has_text="A first question").first
    expect(row.get_by_role("link")).to_have_attribute("href", path)
    expect(row.get_by_role("link")).to_have_attribute("aria-current", "page")
    expect(chat.page).to_have_title("A first question · Hermes")


def test_it_runs_two_conversations_at_once_and_mixes_nothing(
    chat: ChatPage, model: FakeModelServer
) -> None:
    one, two = Gate(), Gate()
    model.script(
        Script(tokens=["First ", "answer."], gates={1: one}),
        Script(tokens=["Second ", "answer."], gates={1: two}),
    )
    chat.send("Ask the first")
    expect(chat.live).to_have_text("First")
    first = chat.wait_opened()
    chat.page.keyboard.press("Control+Shift+O")
    chat.page.wait_for_url(f"{chat.base_url}/")
    expect(chat.bubbles).to_have_count(0)
    chat.send("Ask the second")
    expect(chat.live).to_have_text("Second")
    row = chat.page.locator(f'.session:has(a[href="{first}"])')
    expect(row).to_have_attribute("data-mark", "running")
    one.release()
    expect(row).to_have_attribute("data-mark", "unread")
    expect(chat.live).to_have_text("Second")
    row.get_by_role("link").click()
    expect(row).to_have_attribute("data-mark", "idle")
    expect(chat.answers).to_have_text("First answer.")
    assert chat.texts() == [("user", "Ask the first"), ("answer", "First answer.")]
    two.release()
    chat.page.go_back()
    expect(chat.bubbles).to_have_text("Ask the second")
    expect(chat.footers).to_have_count(1)
    assert chat.texts() == [("user", "Ask the second"), ("answer", "Second answer.")]


def test_it_renames_and_deletes_with_a_way_back(
    chat: ChatPage, new_page: NewPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.ask("Old name")
    path = chat.wait_opened()
    other = new_page().open(path)
    row = chat.page.locator(f'.session:has(a[href="{path}"])')
    row.hover()
    row.get_by_role("button", name="More for Old name").click()
    chat.page.get_by_role("menuitem", name="Rename").click()
    chat.page.keyboard.type("New name")
    chat.page.keyboard.press("Enter")
    expect(row).to_contain_text("New name")
    expect(chat.page.locator("h1")).to_have_text("New name")
    expect(other.page.locator("h1")).to_have_text("New name")
    chat.page.get_by_role("button", name="More for this conversation").click()
    chat.page.get_by_role("menuitem", name="Delete conversation").click()
    expect(row).to_have_count(0)
    expect(other.page.locator(f'.session:has(a[href="{path}"])')).to_have_count(0)
    chat.page.wait_for_url(f"{chat.base_url}/")
    chat.page.get_by_role("button", name="Undo").click()
    chat.page.wait_for_url(f"**{path}")
    expect(chat.answers).to_have_text("Yes.")
    expect(row).to_have_count(1)


def test_it_says_that_a_conversation_is_not_here(chat: ChatPage) -> None:
    chat.open("/c/01920000-0000-7000-8000-000000000000/")
    expect(chat.page.get_by_role("heading", name="This conversation is not here.")).to_be_visible()
    expect(chat.field).to_be_disabled()


def test_it_keeps_a_draft_for_each_conversation(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.ask("With a draft")
    path = chat.wait_opened()
    chat.field.fill("Half a thought")
    chat.page.get_by_role("button", name="New chat").click()
    expect(chat.field).to_have_value("")
    chat.field.fill("Another")
    chat.page.reload()
    expect(chat.field).to_have_value("Another")
    chat.open(path)
    expect(chat.field).to_have_value("Half a thought")


def test_it_breaks_lines_and_leaves_enter_to_an_input_method(
    chat: ChatPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.field.press_sequentially("One")
    chat.field.press("Shift+Enter")
    chat.field.press_sequentially("Two")
    chat.field.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    expect(chat.field).to_have_value("One\nTwo")
    expect(chat.bubbles).to_have_count(0)
    chat.field.press("Enter")
    expect(chat.footers).to_have_count(1)
    assert chat.bubbles.inner_text() == "One\nTwo"


def test_it_refuses_a_message_that_is_too_large_and_keeps_it(
    chat: ChatPage, visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    text = ("x" * 99 + "\n") * 11_000
    chat.field.evaluate(PASTE, text)
    chat.field.press("Enter")
    refusal = "This message is 1.1 MB; the limit is 1 MB."
    expect(chat.part("hint")).to_contain_text(refusal)
    other = visit(served.url)().open()
    for number in range(2):  # news of other conversations draws this page again
        model.script(Script(tokens=["Yes."]))
        other.ask(f"Elsewhere {number}")
        listed = chat.page.get_by_role("navigation").get_by_text(f"Elsewhere {number}")
        if number == 0:
            expect(listed).to_be_visible()
        expect(chat.part("hint")).to_contain_text(refusal)
    assert chat.field.input_value() == text
    expect(chat.bubbles).to_have_count(0)


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_it_never_scrolls_sideways(
    width: int,
    visit: Callable[..., NewPage],
    served: Served,
    model: FakeModelServer,
) -> None:
    phone = width < 768
    new_page = visit(
        served.url, viewport={"width": width, "height": 780}, has_touch=phone, is_mobile=phone
    )
    chat = new_page().open()
    gate = Gate()
    model.script(Script(tokens=[WIDE_TEXT]), Script(tokens=["x " * 50, "end"], gates={1: gate}))

    def sideways() -> int:
        return int(chat.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    assert sideways() == 0
    chat.ask("w" * 300)
    assert sideways() == 0
    chat.send("Again")
    expect(chat.live).to_be_visible()
    chat.send("queued " + "w" * 200)
    expect(chat.queued).to_have_count(1)
    assert sideways() == 0
    if phone:
        small = chat.page.locator(
            ".head button:visible, .composer button:visible, .queued button:visible"
        )
        for button in small.all():
            box = button.bounding_box()
            assert box is not None and min(box["width"], box["height"]) >= 43.5, button.inner_html()
    gate.release()
    expect(chat.footers).to_have_count(3)


def test_it_opens_the_list_in_a_drawer_on_a_phone(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    size = {"width": 390, "height": 844}
    chat = visit(served.url, viewport=size, has_touch=True, is_mobile=True)().open()
    model.script(Script(tokens=["Yes."]))
    chat.ask("From a phone")
    path = chat.wait_opened()
    chat.page.get_by_role("button", name="New chat").click()
    expect(chat.bubbles).to_have_count(0)
    opener = chat.page.get_by_role("button", name="Show conversations")
    opener.click()
    drawer = chat.page.get_by_role("dialog", name="Conversations")
    expect(drawer).to_be_visible()
    expect(chat.field).not_to_be_focused()
    chat.page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    drawer.locator(f'a[href="{path}"]').click()
    expect(drawer).to_be_hidden()
    expect(chat.answers).to_have_text("Yes.")


def test_it_offers_the_way_back_within_the_drawer_and_leaves_the_field_free(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    size = {"width": 390, "height": 844}
    chat = visit(served.url, viewport=size, has_touch=True, is_mobile=True)().open()
    model.script(Script(tokens=["Yes."]), Script(tokens=["Yes."]))
    chat.ask("Deleted in the drawer")
    chat.page.get_by_role("button", name="New chat").click()
    expect(chat.bubbles).to_have_count(0)
    chat.ask("Looked at meanwhile")
    undo = chat.page.get_by_role("button", name="Undo")
    drawer = chat.page.get_by_role("dialog", name="Conversations")
    row = drawer.locator(".session", has_text="Deleted in the drawer")

    def delete() -> None:
        chat.page.get_by_role("button", name="Show conversations").click()
        row.get_by_role("button", name="More for Deleted in the drawer").click()
        chat.page.get_by_role("menuitem", name="Delete conversation").click()
        expect(row).to_have_count(0)

    delete()
    undo.click()
    expect(row).to_have_count(1)
    chat.page.keyboard.press("Escape")
    delete()
    chat.page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(undo).to_be_visible()
    line, field = undo.bounding_box(), chat.field.bounding_box()
    assert line is not None and field is not None
    assert line["y"] + line["height"] <= field["y"]
    undo.click()
    expect(undo).to_be_hidden()


def test_it_has_one_typeface_on_the_login_pages_too(chat: ChatPage) -> None:
    for path in ("/", "/accounts/password/"):
        chat.page.goto(f"{chat.base_url}{path}")
        faces = "document.fonts.ready.then(fonts => [...fonts].map(face => face.status))"
        assert chat.page.evaluate(faces) == ["loaded"], path


def test_it_is_reached_by_keyboard_in_the_order_of_the_page(
    chat: ChatPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.ask("Keys")
    chat.page.reload()
    chat.wait_connected()
    expect(chat.footers).to_have_count(1)
    focused = []
    for _ in range(2000):  # once round the page, past every conversation that other tests opened
        chat.page.keyboard.press("Tab")
        focused.append(chat.page.evaluate(NAME_OF_FOCUSED))
        if focused[-1] == "Message":
            break
    order = [
        "Skip to the message field", "Hermes", "New chat", "Settings and account", "Messages",
        "Copy the answer", "Message",
    ]  # fmt: skip
    assert [name for name in focused if name in order] == order
    chat.page.keyboard.press("Shift+Escape")
    expect(chat.field).to_be_focused()


def test_it_follows_the_chosen_theme_after_a_reload(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name="Settings and account").click()
    chat.page.get_by_role("radio", name="Dark").check()
    expect(chat.page.locator("html")).to_have_attribute("data-theme", "dark")
    chat.page.reload()
    expect(chat.page.locator("html")).to_have_attribute("data-theme", "dark")
    ground = chat.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(18, 22, 23)"


def test_it_stands_still_for_who_asked_for_less_motion(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=["One ", "two"], gates={1: gate}))
    chat = visit(served.url, reduced_motion="reduce")().open()
    chat.send("Go")
    expect(chat.live).to_be_visible()
    moving = chat.page.evaluate(
        "document.getAnimations().filter(a => a.playState === 'running').length"
    )
    assert moving == 0
    gate.release()
    expect(chat.footers).to_have_count(1)


def test_it_logs_out(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name="Settings and account").click()
    chat.page.get_by_role("button", name="Log out").click()
    chat.page.wait_for_url("**/accounts/login/")
