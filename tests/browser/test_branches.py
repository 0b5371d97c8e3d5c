"""Versions of messages and answers: the chat shows which one it is, and switches."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, WebSocketRoute, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.browser.older import HELD_AT_THE_TOP, add_rows
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Script

pytestmark = pytest.mark.browser


def versions(chat: ChatPage, of: str) -> Locator:
    return chat.page.get_by_role("group", name=f"Versions of this {of}")


def test_it_switches_between_answers_and_goes_on_from_the_one_that_is_shown(
    chat: ChatPage, model: FakeModelServer
) -> None:
    for answer in ("First.", "Second.", "Third."):
        model.script(Script(tokens=[answer]))
    chat.ask("One")
    expect(versions(chat, "answer")).to_have_count(0)
    for shown, answer in (("2 of 2", "Second."), ("3 of 3", "Third.")):
        chat.page.get_by_role("button", name="Answer again").click()
        expect(chat.answers).to_have_text([answer])
        expect(versions(chat, "answer")).to_have_text(shown)
    back = versions(chat, "answer").get_by_role("button", name="Previous version")
    back.focus()
    chat.page.keyboard.press("Enter")
    expect(chat.answers).to_have_text(["Second."])
    expect(versions(chat, "answer")).to_have_text("2 of 3")
    expect(back).to_be_focused()
    chat.page.keyboard.press("Enter")
    expect(chat.answers).to_have_text(["First."])
    expect(back).to_be_focused()
    expect(back).to_have_attribute("aria-disabled", "true")
    expect(chat.page.get_by_role("status").filter(has_text="Version 1 of 3")).to_have_count(1)
    chat.page.reload()
    expect(versions(chat, "answer")).to_have_text("1 of 3")
    model.script(Script(tokens=["Fourth."]))
    chat.ask("Two")
    said = [part["content"] for part in model.requests[-1].messages if part["role"] != "system"]
    assert said == ["One", "First.", "Two"]


def test_it_switches_between_what_was_asked_with_all_that_followed(
    chat: ChatPage, model: FakeModelServer
) -> None:
    for answer in ("First.", "Second.", "Other."):
        model.script(Script(tokens=[answer]))
    chat.ask("One")
    chat.ask("Two")
    chat.page.get_by_role("button", name="Edit this message").first.click()
    chat.field.fill("Uno")
    chat.field.press("Enter")
    expect(chat.answers).to_have_text(["Other."])
    expect(versions(chat, "message")).to_have_text("2 of 2")
    versions(chat, "message").get_by_role("button", name="Previous version").click()
    expect(chat.answers).to_have_text(["First.", "Second."])
    expect(chat.bubbles).to_have_text(["One", "Two"])
    expect(versions(chat, "message")).to_have_text("1 of 2")


def test_it_keeps_its_place_where_the_other_version_is_far_up(
    chat: ChatPage, model: FakeModelServer, served: Served
) -> None:
    for answer in ("First.", "Second.", "Third."):
        model.script(Script(tokens=[answer]))
    chat.ask("One")
    chat.ask("Two")
    session = chat.wait_opened().split("/")[2]
    add_rows(served, session, [(0, f"Later row {number}") for number in range(80)])
    chat.page.reload()
    expect(chat.page.get_by_text("Later row 79", exact=True)).to_be_visible()
    chat.page.wait_for_function(HELD_AT_THE_TOP)
    row = chat.page.get_by_role("listitem").filter(has_text="Two")
    row.get_by_role("button", name="Edit this message").click()
    chat.field.fill("Zwei")
    chat.field.press("Enter")
    expect(chat.answers).to_have_text(["First.", "Third."])
    switch = versions(chat, "message")
    before = switch.bounding_box()
    back = switch.get_by_role("button", name="Previous version")
    back.click()
    expect(chat.bubbles).to_have_count(82)
    expect(chat.answers).to_have_text(["First.", "Second."])
    expect(switch).to_have_text("1 of 2")
    expect(back).to_be_focused()
    after = switch.bounding_box()
    assert before is not None and after is not None
    assert abs(before["y"] - after["y"]) < 2
    switch.get_by_role("button", name="Next version").click()
    expect(chat.answers).to_have_text(["First.", "Third."])


def test_it_shows_what_is_opened_and_said_while_older_rows_are_read_again(
    new_page: NewPage, model: FakeModelServer, served: Served
) -> None:
    chat = new_page()
    held: list[Callable[[], None]] = []
    holding = False

    def watch(page: WebSocketRoute) -> None:
        server = page.connect_to_server()

        def on_message(text: str | bytes) -> None:
            if holding and "session.history" in str(text):
                held.append(lambda: server.send(text))
            else:
                server.send(text)

        page.on_message(on_message)

    chat.page.route_web_socket("**/ws/v1/", watch)
    chat.open()
    for answer in ("Elsewhere.", "First.", "Second."):
        model.script(Script(tokens=[answer]))
    chat.ask("Another conversation")
    chat.page.get_by_role("button", name="New chat").click()
    expect(chat.bubbles).to_have_count(0)
    chat.ask("This conversation")
    session = chat.wait_opened().split("/")[2]
    add_rows(served, session, [(number + 1, f"Older row {number}") for number in range(80)])
    chat.page.get_by_role("button", name="Answer again").click()
    expect(chat.answers).to_have_text(["Second."])
    chat.page.wait_for_function(HELD_AT_THE_TOP)
    expect(chat.bubbles).to_have_count(81)
    holding = True
    versions(chat, "answer").get_by_role("button", name="Previous version").click()
    expect(chat.page.get_by_role("status").filter(has_text="Version 1 of 2")).to_have_count(1)
    chat.sessions.filter(has_text="Another conversation").click()
    expect(chat.answers).to_have_text(["Elsewhere."])
    chat.sessions.filter(has_text="This conversation").click()
    expect(chat.answers).to_have_text(["First."])
    model.script(Script(tokens=["Third."]))
    chat.send("Two")
    expect(chat.bubbles.last).to_have_text("Two")
    holding = False
    for release in held:
        release()
    expect(chat.answers).to_have_text(["First.", "Third."])
    expect(chat.bubbles).to_have_count(82)
