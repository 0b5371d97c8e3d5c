"""The main job: send, watch the answer come, stop it, queue, come back."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser


def test_it_sends_and_shows_the_answer_with_its_facts(
    chat: ChatPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["It holds ", "**three days**."]), Script(tokens=["Yes."]))
    chat.ask("Would that hold in winter?")
    assert chat.texts() == [
        ("user", "Would that hold in winter?"),
        ("answer", "It holds three days."),
    ]
    expect(chat.answers.locator("strong")).to_have_text("three days")
    expect(chat.footers.get_by_role("button", name="Warm")).to_be_hidden()
    chat.ask("Are you sure?")
    warm = chat.footers.nth(1).get_by_role("button", name="Warm")
    expect(warm).to_be_visible()
    expect(chat.footers.nth(1)).to_contain_text("% cached")
    warm.click()
    expect(chat.footers.nth(1)).to_contain_text("Nothing had changed")
    expect(chat.footers.nth(1)).to_contain_text("openai:fake-1")
    expect(chat.sessions.first).to_have_text("Would that hold in winter?")
    assert re.fullmatch(r"/c/[0-9a-f-]{36}/", chat.wait_opened())


def test_it_shows_the_answer_while_it_is_written(chat: ChatPage, model: FakeModelServer) -> None:
    gate = Gate()
    model.script(Script(tokens=["First part. ", "Second part."], gates={1: gate}))
    chat.send("Go")
    expect(chat.live).to_have_text("First part.")
    expect(chat.part("status")).to_have_text("Assistant is answering")
    expect(
        chat.page.locator("[aria-live], [role=status], [role=alert]").filter(has=chat.live)
    ).to_have_count(0)
    gate.release()
    expect(chat.footers).to_have_count(1)
    expect(chat.answers).to_have_text("First part. Second part.")
    expect(chat.part("status")).to_have_text("Answer finished, 4 words")


def test_it_stops_an_answer_and_keeps_what_was_written(
    chat: ChatPage, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=["Kept. ", "Never seen."], gates={1: gate}))
    chat.send("Go")
    expect(chat.live).to_have_text("Kept.")
    chat.page.get_by_role("button", name="Stop").click()
    expect(chat.page.get_by_text("Stopped here")).to_be_visible()
    expect(chat.part("stop")).to_be_hidden()
    expect(chat.answers).to_have_text("Kept.")
    gate.release()


def test_it_stops_by_the_escape_key_pressed_twice(
    new_page: NewPage, model: FakeModelServer
) -> None:
    chat, gate = new_page().open_with_clock(), Gate()
    model.script(Script(tokens=["Kept. ", "Never seen."], gates={1: gate}))
    chat.send("Go")
    expect(chat.live).to_have_text("Kept.")
    chat.hold_clock()
    chat.field.press("Escape")
    hint = chat.page.get_by_text("Esc again to stop")
    expect(hint).to_be_visible()
    chat.page.clock.run_for(2001)
    expect(hint).to_be_hidden()
    expect(chat.part("stop")).to_be_visible()
    chat.field.press("Escape")
    expect(hint).to_be_visible()
    chat.field.press("Escape")
    chat.page.clock.resume()
    expect(chat.page.get_by_text("Stopped here")).to_be_visible()
    gate.release()


def test_it_goes_on_with_the_live_answer_after_a_reload(
    chat: ChatPage, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=["Before the reload, ", "and after."], gates={1: gate}))
    chat.send("Go")
    chat.wait_opened()
    expect(chat.live).to_have_text("Before the reload,")
    chat.page.reload()
    expect(chat.live).to_have_text("Before the reload,")
    gate.release()
    expect(chat.footers).to_have_count(1)
    assert chat.texts() == [("user", "Go"), ("answer", "Before the reload, and after.")]
    chat.page.reload()
    expect(chat.footers).to_have_count(1)
    assert chat.texts() == [("user", "Go"), ("answer", "Before the reload, and after.")]


def test_it_shows_two_tabs_the_same(
    chat: ChatPage, new_page: NewPage, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=["Same ", "words."], gates={1: gate}), Script(tokens=["Again."]))
    chat.send("From the first tab")
    other = new_page().open(chat.wait_opened())
    expect(other.live).to_have_text("Same")
    gate.release()
    expect(other.footers).to_have_count(1)
    other.ask("From the second tab")
    expect(chat.footers).to_have_count(2)
    assert chat.texts() == other.texts()
    assert [text for kind, text in chat.texts() if kind == "user"] == [
        "From the first tab",
        "From the second tab",
    ]


def test_it_queues_a_message_while_an_answer_runs(chat: ChatPage, model: FakeModelServer) -> None:
    gate = Gate()
    model.script(Script(tokens=["One ", "done."], gates={1: gate}), Script(tokens=["Two done."]))
    chat.send("One")
    expect(chat.live).to_have_text("One")
    expect(chat.page.get_by_role("button", name="Queue")).to_be_visible()
    chat.send("Two, first wording")
    chat.send("Three")
    expect(chat.queued).to_have_text(["Two, first wording", "Three"])
    expect(chat.bubbles).to_have_text(["One"])
    queue = chat.part("queueItems")
    queue.get_by_role("button", name="Edit this message").first.click()
    edit = queue.get_by_role("textbox", name="Message")
    edit.fill("Two")
    edit.press("Enter")
    expect(chat.queued).to_have_text(["Two", "Three"])
    chat.page.get_by_role("button", name="Remove this message").nth(1).click()
    expect(chat.queued).to_have_text(["Two"])
    chat.page.reload()
    expect(chat.queued).to_have_text(["Two"])
    gate.release()
    expect(chat.footers).to_have_count(2)
    expect(chat.queued).to_have_count(0)
    assert chat.texts() == [
        ("user", "One"),
        ("answer", "One done."),
        ("user", "Two"),
        ("answer", "Two done."),
    ]


def test_it_says_what_failed_and_tries_again(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(
        Script(status=401, error={"message": "no such key"}), Script(tokens=["Now it works."])
    )
    chat.send("Try")
    failed = chat.page.locator(".notice[data-state=failed]")
    expect(failed).to_be_visible()
    expect(chat.part("alert")).not_to_be_empty()
    failed.get_by_role("button", name="Retry").click()
    expect(chat.answers).to_have_text("Now it works.")
    expect(failed).to_have_count(0)
    assert chat.texts() == [("user", "Try"), ("answer", "Now it works.")]


def test_it_offers_no_retry_that_would_take_away_later_messages(
    chat: ChatPage, model: FakeModelServer
) -> None:
    refused = Script(status=401, error={"message": "no such key"})
    model.script(refused, refused)
    chat.send("One")
    failed = chat.page.locator(".notice[data-state=failed]")
    expect(failed).to_have_count(1)
    chat.send("Two")
    expect(failed).to_have_count(2)
    expect(chat.page.get_by_role("button", name="Retry")).to_have_count(1)
    expect(failed.last.get_by_role("button", name="Retry")).to_be_visible()
