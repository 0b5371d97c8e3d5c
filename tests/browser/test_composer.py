"""The composer and what is docked to it: ways to send, edits, drafts, models, the window."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser

Visit = Callable[..., NewPage]


def menu_entry(chat: ChatPage, name: str) -> Locator:
    return chat.page.locator("[role=menu]").get_by_text(name, exact=True)


def held(chat: ChatPage, model: FakeModelServer) -> Gate:
    """An answer that has shown one word and waits."""
    gate = Gate()
    model.script(Script(tokens=["First ", "and last."], gates={1: gate}))
    chat.send("One")
    expect(chat.live).to_have_text("First")
    return gate


def test_it_sends_now_what_need_not_wait_for_the_answer(
    chat: ChatPage, model: FakeModelServer
) -> None:
    gate = held(chat, model)
    chat.field.fill("Two")
    expect(chat.part("sendWord")).to_have_text("Queue")
    chat.part("ways").click()
    for name in ("Queue", "Steer", "Send now"):
        expect(menu_entry(chat, name)).to_be_visible()
    model.script(Script(tokens=["Second."]))
    menu_entry(chat, "Send now").click()
    expect(chat.answers).to_have_text(["First", "Second."])
    expect(chat.page.get_by_text("Stopped here")).to_be_visible()
    expect(chat.field).to_have_value("")
    gate.release()


def test_it_shows_three_that_wait_in_every_tab_and_sends_one_before_its_turn(
    new_page: NewPage, model: FakeModelServer
) -> None:
    chat = new_page().open()
    gate = held(chat, model)
    for text in ("Two", "Three", "Four", "Five", "Six"):
        chat.send(text)
    other = new_page().open(chat.wait_opened())
    for tab in (chat, other):
        expect(tab.queued).to_have_text(["Two", "Three", "Four"])
        expect(tab.part("queueMore")).to_have_text("2 more")
    chat.part("queueMore").click()
    expect(chat.queued).to_have_text(["Two", "Three", "Four", "Five", "Six"])
    for left in (4, 3, 2, 1):
        chat.page.get_by_role("button", name="Remove this message").first.click()
        expect(chat.queued).to_have_count(left)
    for tab in (chat, other):
        expect(tab.queued).to_have_text(["Six"])
    chat.field.press("ArrowUp")
    chat.page.locator(".queued-form [data-part=field]").fill("Six in other words")
    chat.page.keyboard.press("Enter")
    for tab in (chat, other):
        expect(tab.queued).to_have_text(["Six in other words"])
    model.script(Script(tokens=["Sixth."]))
    other.page.get_by_role("button", name="Send now").click()
    for tab in (chat, other):
        expect(tab.answers).to_have_text(["First", "Sixth."])
        expect(tab.queued).to_have_count(0)
    gate.release()


def test_it_sends_now_by_the_keys_alone(chat: ChatPage, model: FakeModelServer) -> None:
    gate = held(chat, model)
    model.script(Script(tokens=["Second."]))
    chat.field.fill("Two")
    chat.field.press("Control+Enter")
    expect(chat.answers).to_have_text(["First", "Second."])
    gate.release()


def test_it_edits_the_last_message_by_the_up_key(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Old answer."]), Script(tokens=["New answer."]))
    chat.ask("Old words")
    chat.field.press("ArrowUp")
    expect(chat.field).to_have_value("Old words")
    expect(chat.part("editing")).to_be_visible()
    chat.field.press("Escape")
    expect(chat.field).to_have_value("")
    expect(chat.part("editing")).to_be_hidden()
    chat.field.press("ArrowUp")
    chat.field.fill("New words")
    chat.field.press("Enter")
    expect(chat.answers).to_have_text("New answer.")
    assert chat.texts() == [("user", "New words"), ("answer", "New answer.")]
    expect(chat.field).to_have_value("")


def test_it_edits_an_earlier_message_by_its_button(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(*(Script(tokens=[f"{word} answer."]) for word in ("First", "Second", "New")))
    chat.ask("First words")
    chat.ask("Second words")
    first = chat.page.locator(".row.user", has_text="First words")
    first.get_by_role("button", name="Edit this message").click()
    expect(chat.field).to_be_focused()
    expect(chat.field).to_have_value("First words")
    chat.field.fill("Other words")
    chat.field.press("Enter")
    expect(chat.answers).to_have_text(["New answer."])
    assert chat.texts() == [("user", "Other words"), ("answer", "New answer.")]


def test_it_keeps_the_draft_apart_from_what_is_edited(
    chat: ChatPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.ask("Asked")
    chat.field.press("ArrowUp")
    chat.field.fill("Asked in other words")
    chat.page.reload()
    chat.wait_connected()
    expect(chat.field).to_have_value("")


def test_it_shows_what_waits_once_whichever_tab_sent_it(
    new_page: NewPage, model: FakeModelServer
) -> None:
    chat = new_page().open()
    gate = held(chat, model)
    other = new_page().open(chat.wait_opened())
    chat.send("Two")
    expect(other.queued).to_have_text(["Two"])
    other.send("Three")
    for tab in (chat, other):
        expect(tab.queued).to_have_text(["Two", "Three"])
    gate.release()
    expect(chat.footers).to_have_count(3)


def test_it_takes_a_message_out_once_whose_button_is_pressed_twice(
    chat: ChatPage, model: FakeModelServer
) -> None:
    gate = held(chat, model)
    chat.send("Two")
    remove = chat.page.get_by_role("button", name="Remove this message")
    expect(remove).to_be_enabled()
    remove.evaluate("button => { button.click(); button.click() }")
    expect(chat.queued).to_have_count(0)
    gate.release()
    expect(chat.footers).to_have_count(1)
    expect(chat.part("alert")).to_be_empty()


def test_it_shows_the_draft_in_another_tab(new_page: NewPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Yes."]))
    one = new_page().open()
    one.ask("Open it")
    other = new_page().open(one.wait_opened())
    one.field.fill("Half a thought")
    expect(other.field).to_have_value("Half a thought")
    one.field.fill("")
    expect(other.field).to_have_value("")


def test_it_leaves_the_up_key_to_a_field_with_words(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Yes."]))
    chat.ask("Asked")
    chat.field.fill("Words")
    chat.field.press("ArrowUp")
    expect(chat.field).to_have_value("Words")
    expect(chat.part("editing")).to_be_hidden()


@pytest.fixture(scope="module")
def models() -> Iterator[FakeModelServer]:
    """A server with two models; it tells the window of one."""
    with FakeModelServer() as server:
        server.models = ["fake-1", "fake-2"]
        server.windows = {"fake-1": 1000}
        yield server


@pytest.fixture(scope="module")
def offering(models: FakeModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("offering"), models.url) as served:
        yield served


def test_it_chooses_the_model_before_and_within_a_conversation(
    visit: Visit, offering: Served, models: FakeModelServer
) -> None:
    models.forget_scripts()
    new_page = visit(offering.url)
    chat = new_page().open()
    expect(chat.part("modelName")).to_have_text("fake-1")
    chat.part("model").click()
    menu_entry(chat, "fake-2").click()
    expect(chat.part("modelName")).to_have_text("fake-2")
    chat.ask("By the second")
    assert models.requests[-1].json["model"] == "fake-2"
    chat.part("model").click()
    menu_entry(chat, "fake-1").click()
    expect(chat.part("modelName")).to_have_text("fake-1")
    expect(chat.part("status")).to_have_text("fake-1 answers from now on")
    chat.ask("By the first")
    assert models.requests[-1].json["model"] == "fake-1"
    chat.page.reload()
    expect(chat.part("modelName")).to_have_text("fake-1")
    other = new_page().open(chat.wait_opened())
    other.part("model").click()
    menu_entry(other, "fake-2").click()
    expect(chat.part("modelName")).to_have_text("fake-2")


def test_it_tries_again_with_another_model(
    visit: Visit, offering: Served, models: FakeModelServer
) -> None:
    models.forget_scripts()
    models.script(Script(status=401), Script(tokens=["By the second."]))
    chat = visit(offering.url)().open()
    chat.send("Who answers?")
    failed = chat.page.locator(".notice[data-state=failed]")
    another = failed.get_by_role("button", name="Use another model")
    another.click()
    menu_entry(chat, "fake-2").click()
    expect(chat.answers).to_have_text("By the second.")
    expect(failed).to_have_count(0)
    assert models.requests[-1].json["model"] == "fake-2"
    expect(chat.part("modelName")).to_have_text("fake-2")


def test_it_tells_how_full_the_window_is_and_refuses_what_cannot_fit(
    visit: Visit, offering: Served, models: FakeModelServer
) -> None:
    models.forget_scripts()
    models.script(Script(usage={"prompt_tokens": 310}), Script(usage={"prompt_tokens": 850}))
    chat = visit(offering.url)().open()
    expect(chat.part("gauge")).to_be_hidden()
    chat.ask("A little")
    expect(chat.part("gaugeWord")).to_have_text("31 %")
    expect(chat.part("gauge")).to_have_attribute("data-tone", "plain")
    chat.ask("A lot")
    expect(chat.part("gaugeWord")).to_have_text("85 %")
    expect(chat.part("gauge")).to_have_attribute("data-tone", "wait")
    chat.part("gauge").click()
    expect(chat.part("gaugeWords")).to_contain_text("held 850 tokens; fake-1 holds 1,000.")
    chat.page.keyboard.press("Escape")
    chat.page.reload()
    expect(chat.part("gaugeWord")).to_have_text("85 %")
    asked = len(models.requests)
    chat.send("x" * 9000)
    expect(chat.page.locator(".notice[data-state=failed]")).to_contain_text("Start a new chat")
    assert len(models.requests) == asked


def test_it_scrolls_the_field_only_at_its_greatest_height(new_page: NewPage) -> None:
    chat = new_page()
    chat.page.add_init_script(
        "CSS.supports = () => false;"
        "addEventListener('DOMContentLoaded', () => {"
        " document.querySelector('.composer textarea').style.fieldSizing = 'fixed'; });"
    )
    chat.open()
    expect(chat.field).to_have_css("overflow-y", "hidden")
    chat.field.fill("One\nTwo\nThree")
    expect(chat.field).to_have_css("overflow-y", "hidden")
    assert chat.field.evaluate("field => field.scrollHeight <= field.clientHeight")
    chat.field.fill("Line\n" * 100)
    expect(chat.field).to_have_css("overflow-y", "auto")
    chat.field.fill("Line\n" * 8)
    expect(chat.field).to_have_css("overflow-y", "hidden")
    chat.page.set_viewport_size({"width": 390, "height": 400})
    expect(chat.field).to_have_css("overflow-y", "auto")
