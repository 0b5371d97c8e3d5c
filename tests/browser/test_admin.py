"""The admin in a real browser: the strict policy holds on every page, the layout on every width."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect, sync_playwright

from gateway_app.models import Agent, Turn
from gateway_app.services.presence import PresenceReport, renew_presence
from sessions_app.models import BLOCK
from tests.browser.chat_page import PATIENCE_MS
from tests.browser.hostile import MARKDOWN, MARKUP, MATHS
from tests.browser.test_accessibility import findings
from tests.browser.violations import watch_violations
from tests.factories import (
    AgentFactory,
    AgentVersionFactory,
    ApiTokenFactory,
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    SuperuserFactory,
    TurnFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MARKED_UP = (
    "Some **bold** text.\n\n| A | B |\n|:-|-:|\n| Fridge | 450 Wh |\n\n```python\nx = 1\n```"
)


@pytest.fixture
def addresses(live_server) -> dict[str, str]:
    """Every kind of page, by name; made before the browser's own event loop runs."""
    session = SessionFactory(title="<img src=x onerror=alert(1)>" + "w" * 150)
    turn = TurnFactory(session=session, block=1, verdict="rebuild", reason="rewritten")
    call = {"type": "tool_call", "id": "1", "name": "look_up", "arguments": "{}" * 400}
    for number in range(1, 5):
        text = {"type": "text", "text": "<svg onload=alert(1)>" + "w" * 300}
        MessageFactory(session=session, position=BLOCK + number, turn_id=turn.pk,
                       kind="assistant", parts=[text, call])  # fmt: skip
    agent, token = AgentFactory(), ApiTokenFactory()
    AgentVersionFactory(agent=agent, number=2, system_prompt="<img src=x onerror=alert(1)>")
    Agent.objects.filter(pk=agent.pk).update(current_version=2)
    renew_presence(PresenceReport("web:1:<svg onload=alert(1)>", 1, 128, 10, {session.pk: 1}))
    Turn.objects.filter(pk=turn.pk).update(lease_owner="web:1:<svg onload=alert(1)>")
    QueuedTurnFactory(session=session)
    SessionFactory(title="<svg onload=alert(1)>", deleted_at=timezone.now())
    answers = SessionFactory(title="Answers")
    texts = [MARKED_UP, *MARKUP.values(), *MARKDOWN.values(), *MATHS.values()]
    for number, text in enumerate(texts, start=1):
        text = text.replace("\0", "").encode("utf-8", "replace").decode()
        MessageFactory(session=answers, position=BLOCK + number, kind="assistant", text=text)
    paths = {
        "index": "",
        "answers": f"sessions_app/session/{answers.pk}/transcript/",
        "sessions": "sessions_app/session/",
        "found": "sessions_app/session/?q=img&is=idle",
        "transcript": f"sessions_app/session/{session.pk}/transcript/",
        "deleted": "sessions_app/session/?is=deleted",
        "board": "board/",
        "compared": f"gateway_app/agent/{agent.pk}/compare/1/2/",
        "apply": f"gateway_app/agent/{agent.pk}/apply/",
        "session": f"sessions_app/session/{session.pk}/change/",
        "delete": f"sessions_app/session/{session.pk}/delete/",
        "turns": "gateway_app/turn/?verdict=rebuild",
        "turn": f"gateway_app/turn/{turn.pk}/change/",
        "agents": "gateway_app/agent/",
        "agent": f"gateway_app/agent/{agent.pk}/change/",
        "version": f"gateway_app/agentversion/{agent.versions.get(number=1).pk}/change/",
        "tokens": "gateway_app/apitoken/",
        "token": f"gateway_app/apitoken/{token.pk}/change/",
        "new token": "gateway_app/apitoken/add/",
        "users": "auth/user/",
        "user": f"auth/user/{session.owner_id}/change/",
        "group": "auth/group/add/",
    }
    return {name: f"{live_server.url}/admin/{path}" for name, path in paths.items()}


@pytest.fixture
def cookie(live_server) -> dict[str, str]:
    client = Client()
    client.force_login(SuperuserFactory())
    value = client.cookies["sessionid"].value
    return {"name": "sessionid", "value": value, "url": live_server.url}


@pytest.fixture
def theme() -> str:
    return "light"


@pytest.fixture
def page(theme, cookie, addresses, violations) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        context = browser.new_context(color_scheme=theme)
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([cookie])
        watch_violations(context, violations)
        yield context.new_page()
        browser.close()


def test_it_breaks_the_policy_on_no_page(page, addresses, violations):
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    for name, address in addresses.items():
        response = page.goto(address)
        page.wait_for_load_state("networkidle")
        assert response.status == 200, name
        assert violations == [], name
    assert faults == []


@pytest.mark.parametrize("name", ["transcript", "board", "delete", "compared", "apply"])
def test_it_reads_our_pages_without_scrolling_sideways(page, addresses, name):
    for width in (1440, 1024, 390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(addresses[name])
        inner, outer = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert inner <= outer, width


def test_it_draws_answers_as_the_chat_does(page, addresses, violations):
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(addresses["answers"])
    first = page.locator(".h-row").first
    expect(first.locator(".prose strong")).to_have_text("bold")
    expect(first.locator(".prose table td").last).to_have_text("450 Wh")
    expect(first.locator(".prose table th").first).to_have_css("text-transform", "none")
    expect(first.locator(".prose pre code")).to_have_text("x = 1\n")
    expect(first.locator(".prose .code-number")).to_have_text("1")
    first.get_by_text("As it is stored").click()
    expect(first.locator(".h-source .h-text")).to_have_text(MARKED_UP)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.ran") is None
    assert page.locator(".prose :is(script, style, iframe, form)").count() == 0
    remote = "all => all.filter(e => !e.src.startsWith('data:')).length"
    assert page.locator(".prose img").evaluate_all(remote) == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert (faults, violations) == ([], [])


@pytest.mark.parametrize("name", ["sessions", "turns", "agents", "tokens", "users"])
def test_it_cuts_no_column_of_a_list(page, addresses, name):
    """On a desk all of them fit; on a phone the table scrolls in its own box."""
    sizes = """() => {
        const table = document.querySelector("#result_list"), box = table.closest(".results");
        return [table.scrollWidth - box.clientWidth, getComputedStyle(box).overflowX,
                document.documentElement.scrollWidth - innerWidth];
    }"""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(addresses[name])
        beyond, overflow, sideways = page.evaluate(sizes)
        assert (beyond <= 0 or width < 1280) and sideways <= 0, (width, beyond, sideways)
        assert overflow == "auto"


def test_it_cuts_no_column_of_an_agents_versions_on_a_phone(page, addresses):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(addresses["agent"])
    box = page.get_by_role("region", name="Versions")
    assert box.evaluate("one => getComputedStyle(one).overflowX") == "auto"
    inside = "one => one.getBoundingClientRect().right <= one.closest('.form-row').clientWidth + 20"
    assert box.evaluate(inside)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("clipboard", ["as with https", "as without"])
def test_it_copies_a_new_token(page, addresses, violations, clipboard):
    """Browsers have `navigator.clipboard` only where the connection is secure."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if clipboard == "as without":
        page.add_init_script("delete Navigator.prototype.clipboard")
    page.goto(addresses["new token"])
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Save").click()
    button = page.get_by_role("button", name="Copy the token")
    button.press("Enter")
    expect(page.get_by_role("status")).to_have_text("The token is copied.")
    expect(button).to_be_focused()
    token = page.locator("#secret").inner_text()
    assert token.startswith("hms_")
    page.goto(addresses["tokens"])
    search = page.locator("#searchbar")
    search.press("Control+v")
    expect(search).to_have_value(token)
    assert violations == []


@pytest.mark.parametrize(
    ("theme", "colour"), [("light", "rgb(106, 72, 176)"), ("dark", "rgb(189, 168, 246)")]
)
def test_it_follows_the_systems_theme_with_its_own_colours(page, addresses, colour):
    page.goto(addresses["turns"])
    mark = page.locator(".h-tone-rebuilt").first
    assert mark.evaluate("(element) => getComputedStyle(element).color") == colour


OURS = {"include": [["#content"]], "exclude": [["#searchbar"]]}
"""Without what is Django's: its search field is named by a title alone."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_lets_everybody_use_our_pages(page, addresses):
    """Also at the width of a phone, where the facts stand under the text."""
    found = {}
    for name in ("sessions", "turns", "transcript", "board", "compared", "apply"):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(addresses[name])
            found[f"{name} {width}"] = findings(page, OURS)
    assert not any(found.values()), found
