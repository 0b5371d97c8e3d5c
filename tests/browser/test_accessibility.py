"""No serious or critical finding of axe, on any page and in every state of the chat."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Script

pytestmark = pytest.mark.browser

RICH = (
    "## A heading\n\nText with `code` and **bold**.\n\n"
    "| A | B |\n|-|-:|\n| x | 1 |\n\n```python\nprint(1)\n```\n"
)
STILL = {"reduced_motion": "reduce"}
"""Amid a transition a colour is one that nobody reads."""


def findings(page: Page, within: dict[str, Any] | None = None) -> list[str]:
    """What axe takes for serious or critical, one line each; `within` is its context."""
    found: list[dict[str, Any]] = Axe().run(page, context=within).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:120]}"
        for one in found
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_lets_everybody_use_the_chat(
    width: int, scheme: str, visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    phone = width < 768
    size = {"width": width, "height": 844}
    chat = visit(
        served.url, viewport=size, has_touch=phone, is_mobile=phone, color_scheme=scheme, **STILL
    )().open()
    states = {"empty": findings(chat.page)}
    model.script(Script(tokens=[RICH]), Script(tokens=["Yes."]))
    chat.ask(f"Words on {width} {scheme}")
    chat.ask("Is it warm?")
    states["messages"] = findings(chat.page)
    if phone:
        chat.page.get_by_role("button", name="Show conversations").click()
        expect(chat.page.get_by_role("dialog", name="Conversations")).to_be_visible()
        states["drawer"] = findings(chat.page)
        chat.page.keyboard.press("Escape")
    opened = {"palette": "Control+k", "keys": "Control+/", "find": "Control+Shift+F"}
    for name, keys in opened.items():
        chat.page.keyboard.press(keys)
        states[name] = findings(chat.page)
        chat.page.keyboard.press("Escape")
    open_settings(chat, phone)
    states["settings"] = findings(chat.page)
    assert not any(states.values()), states


def open_settings(chat: ChatPage, phone: bool) -> None:
    if phone:
        chat.page.get_by_role("button", name="Show conversations").click()
    chat.page.get_by_role("button", name="Settings and account").click()
    expect(chat.page.get_by_role("dialog", name="Settings")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_lets_everybody_log_in_and_set_a_password(
    scheme: str, visit: Callable[..., NewPage], served: Served
) -> None:
    tab = visit(served.url, color_scheme=scheme, **STILL)()
    tab.expected = ("410 (Gone)",)
    page, states = tab.page, {}
    for path in ("/accounts/password/", "/login/no-such-link/"):
        page.goto(served.url + path)
        states[path] = findings(page)
    page.context.clear_cookies()
    page.goto(served.url + "/accounts/login/")
    states["login"] = findings(page)
    page.get_by_label("Username").fill("nobody")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    states["refused"] = findings(page)
    assert not any(states.values()), states


def test_it_would_find_what_nobody_can_read(chat: ChatPage) -> None:
    chat.page.evaluate("document.querySelector('.greeting h2').style.color = '#eeeeee'")
    chat.page.evaluate("document.querySelector('[data-part=newChat]').textContent = ''")
    found = " ".join(findings(chat.page))
    assert "color-contrast" in found
    assert "button-name" in found


def test_it_tells_by_borders_what_colours_cannot_where_the_system_chooses_them(
    visit: Callable[..., NewPage], served: Served, model: FakeModelServer
) -> None:
    chat = visit(served.url, forced_colors="active")().open()
    model.script(Script(tokens=["Yes."]))
    chat.ask("In few colours")
    chat.page.keyboard.press("Control+k")
    border = "e => { const s = getComputedStyle(e); return [s.borderTopWidth, s.borderTopColor] }"
    ground = chat.page.evaluate("getComputedStyle(document.body).backgroundColor")
    marked = (
        ".bubble",
        ".session-row:has([aria-current])",
        '.palette-option[aria-selected="true"]',
    )
    for selector in marked:
        width, colour = chat.page.locator(selector).first.evaluate(border)
        assert width == "1px", selector
        assert colour != ground, selector
