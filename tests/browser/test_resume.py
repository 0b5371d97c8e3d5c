"""An answer that is left in its midst, in every way: in the end what was written is read."""

import random
import re
from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import HEARD_MS, PATIENCE_MS, ChatPage
from tests.browser.conftest import NewPage
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.wire import Wire

pytestmark = pytest.mark.browser

LIVE_MS: Final = HEARD_MS
"""A second is meant, and measured by `bench.page`; here it is sooner than a heartbeat heals."""
AWAY_MS: Final = 20_000
SEEDS: Final = (1, 2, 3)
Leave = Callable[[ChatPage, NewPage, Wire], ChatPage]


def long_answer(seed: int) -> list[str]:
    """Some 60 pieces of Markdown, cut anywhere."""
    blocks = [
        "# Heading {0}\n\n", "Paragraph {0} with **bold** and `code`, naïve 日本.\n\n",
        "```py\ndef f{0}():\n    return {0}\n```\n\n", "- item {0}\n- $x_{0}$\n\n",
        "| a | b |\n|--:|:-:|\n| {0} | 1 |\n\n",
    ]  # fmt: skip
    text = "".join(blocks[number % len(blocks)].format(number) for number in range(40))
    dice = random.Random(seed)
    pieces = []
    while text:
        size = dice.randint(5, 60)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def reload(chat: ChatPage, _: NewPage, __: Wire) -> ChatPage:
    chat.page.reload()
    return chat


def switch(chat: ChatPage, _: NewPage, __: Wire) -> ChatPage:
    chat.page.get_by_role("button", name="New chat").first.click()
    expect(chat.answers).to_have_count(0)
    chat.page.go_back()
    return chat


def go_offline(chat: ChatPage, _: NewPage, wire: Wire) -> ChatPage:
    """The wire is cut while the page's own clock runs for 20 seconds."""
    wire.cut()
    expect(chat.page.locator(".strip")).to_be_visible()
    chat.page.clock.fast_forward(AWAY_MS)
    wire.mend()
    chat.page.evaluate("dispatchEvent(new Event('online'))")
    return chat


def open_elsewhere(chat: ChatPage, new_page: NewPage, _: Wire) -> ChatPage:
    path = chat.page.url.removeprefix(chat.base_url)
    chat.page.close()
    other = new_page()
    other.page.goto(chat.base_url + path)
    return other


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("leave", [reload, switch, go_offline, open_elsewhere])
def test_it_reads_the_same_whatever_happened_meanwhile(
    visit: Callable[..., NewPage], wire: Wire, model: FakeModelServer, leave: Leave, seed: int
) -> None:
    pieces = long_answer(seed)
    dice = random.Random(seed)
    left, back, end = sorted(dice.sample(range(4, len(pieces)), 3))
    gates = {at: Gate() for at in (left, back, end)}
    new_page = visit(wire.url)
    chat = new_page()
    chat.expected = ("net::ERR_", "WebSocket connection to")
    if leave is go_offline:
        chat.page.clock.install()
    chat.open()
    model.script(Script(tokens=pieces, gates=gates))
    chat.send("Go")
    path = chat.wait_opened()
    wait_for(chat, "".join(pieces[:left]))
    gates[left].release()
    chat = leave(chat, new_page, wire)
    chat.expected = ("net::ERR_", "WebSocket connection to")
    chat.wait_connected()
    wait_for(chat, "".join(pieces[:back]), LIVE_MS)
    for gate in gates.values():
        gate.release()
    expect(chat.footers).to_have_count(1)
    undisturbed = new_page().open(path)
    expect(undisturbed.footers).to_have_count(1)
    assert copied(chat) == copied(undisturbed) == "".join(pieces)
    html = "prose => prose.innerHTML"
    settle(chat)
    settle(undisturbed)
    assert chat.answers.evaluate(html) == undisturbed.answers.evaluate(html)


def wait_for(chat: ChatPage, text: str, timeout_ms: int = PATIENCE_MS) -> None:
    """The live answer has come as far as `text`: its last words that stood nowhere before."""
    found = re.findall(r"(?:Heading|Paragraph|return|item) \d+(?=\D)", text)
    expect(chat.page.locator(".answer .prose")).to_contain_text(found[-1], timeout=timeout_ms)


def settle(chat: ChatPage) -> None:
    """Formulas are drawn and code is coloured."""
    expect(chat.answers.locator(".maths .katex")).to_have_count(8)
    expect(chat.answers.locator(".code-keyword")).to_have_count(16)


def copied(chat: ChatPage) -> str:
    """The answer as the button copies it: byte for byte what the model wrote."""
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.page.bring_to_front()
    chat.page.evaluate("navigator.clipboard.writeText('')")
    chat.page.get_by_role("button", name="Copy the answer").click()
    chat.page.wait_for_function("navigator.clipboard.readText().then(text => text !== '')")
    text: str = chat.page.evaluate("navigator.clipboard.readText()")
    return text
