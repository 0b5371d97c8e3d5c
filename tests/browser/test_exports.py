"""A conversation as a file, from the chat: by its menu, by the palette, and when it fails."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Download, Response, expect

from tests.browser.chat_page import ChatPage
from tests.browser.test_list import choose, row_of
from tests.fake_model_server import FakeModelServer, Script

pytestmark = pytest.mark.browser


def text_of(download: Download) -> str:
    return Path(download.path()).read_text()


def test_it_exports_from_the_menu_also_what_is_archived(
    chat: ChatPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Down, ", "**mostly**."]))
    chat.ask("What are pillows made of?")
    path = chat.wait_opened()
    choose(chat, path, "Archive")
    chat.page.get_by_role("button", name="Archived").click()
    with chat.page.expect_download() as download:
        choose(chat, path, "Export as Markdown")
    name = download.value.suggested_filename
    assert name.startswith("what-are-pillows-made-of-")
    assert name.endswith(".md")
    assert "Down, **mostly**." in text_of(download.value)
    expect(chat.part("toastText")).to_have_text(f"Exported as {name}")
    expect(chat.part("status")).to_have_text(f"Exported as {name}")
    expect(row_of(chat, path).get_by_role("button")).to_be_focused()


def test_it_exports_by_the_keyboard(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["By keys."]))
    chat.ask("Kissen für Gäste")
    path = chat.wait_opened()
    chat.page.keyboard.press("Control+k")
    chat.page.keyboard.type(">jsonl")
    with chat.page.expect_download() as download:
        chat.page.keyboard.press("Enter")
    assert download.value.suggested_filename.startswith("kissen-fur-gaste-")
    assert download.value.suggested_filename.endswith(".jsonl")
    head, *lines = map(json.loads, text_of(download.value).splitlines())
    assert (head["type"], head["title"]) == ("session", "Kissen für Gäste")
    texts = [line["parts"][-1]["text"] for line in lines if line["type"] == "message"]
    assert texts == ["Kissen für Gäste", "By keys."]
    expect(chat.field).to_be_focused()
    assert path in chat.page.url


def test_it_says_why_nothing_was_saved(chat: ChatPage, model: FakeModelServer) -> None:
    model.script(Script(tokens=["Gone soon."]))
    chat.ask("To be deleted")
    path = chat.wait_opened()
    chat.expected = ("404", "ERR_FAILED")
    export = "**/export?form=*"
    chat.page.route(export, lambda route: route.abort())
    choose(chat, path, "Export as JSONL")
    expect(chat.part("alert")).to_have_text(
        "The server could not be reached. Nothing was saved; try again."
    )
    chat.page.unroute(export)
    elsewhere = "00000000-0000-0000-0000-000000000000"
    session_id = path.split("/")[2]
    chat.page.route(
        export,
        lambda route: route.continue_(url=route.request.url.replace(session_id, elsewhere)),
    )
    with chat.page.expect_response(export) as answer:
        choose(chat, path, "Export as JSONL")
    refused: Response = answer.value
    assert refused.status == 404
    expect(chat.part("alert")).to_have_text("This conversation does not exist.")
