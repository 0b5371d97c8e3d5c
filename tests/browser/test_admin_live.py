"""The admin's pages follow what happens: no reload, nothing jumps, nobody polls unseen."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect, sync_playwright

from gateway_app.models import Turn
from gateway_app.services.presence import PresenceReport, renew_presence
from sessions_app.models import BLOCK, Message, Session
from tests.browser.chat_page import PATIENCE_MS
from tests.browser.violations import watch_violations
from tests.factories import MessageFactory, SessionFactory, SuperuserFactory, TurnFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HIDE = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})"
SHOW = """
Object.defineProperty(document, 'hidden', {configurable: true, get: () => false});
document.dispatchEvent(new Event('visibilitychange'));
"""


@pytest.fixture
def session() -> Session:
    session = SessionFactory(title="Refund for order 2291")
    turn = TurnFactory(session=session, block=1)
    call = {"type": "tool_call", "id": "1", "name": "order_lookup", "arguments": "{}"}
    for number in range(1, 60):
        part = call if number == 30 else {"type": "text", "text": f"Row {number}\n" * 3}
        MessageFactory(session=session, position=BLOCK + number, turn_id=turn.pk,
                       kind="assistant", parts=[part])  # fmt: skip
    return session


@pytest.fixture
def cookie(live_server) -> dict[str, str]:
    client = Client()
    client.force_login(SuperuserFactory())
    value = client.cookies["sessionid"].value
    return {"name": "sessionid", "value": value, "url": live_server.url}


@pytest.fixture
def meanwhile() -> Iterator[Callable[..., Any]]:
    """Runs a call with the database on a thread of its own: this one has the browser's loop."""
    with ThreadPoolExecutor(max_workers=1) as pool:

        def run(call: Callable[..., Any], **fields: object) -> Any:
            return pool.submit(call, **fields).result()

        yield run
        pool.submit(connections.close_all).result()


@pytest.fixture
def page(session, cookie, violations) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([cookie])
        watch_violations(context, violations)
        page = context.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
        page.clock.install()
        yield page
        browser.close()
    assert faults == []


def test_it_follows_a_transcript_and_nothing_jumps(live_server, page, session, meanwhile):
    page.goto(f"{live_server.url}/admin/sessions_app/session/{session.pk}/transcript/")
    page.get_by_text("order_lookup").first.click()
    page.evaluate("""() => {
      scrollTo(0, 900);
      window.kept = document.querySelector('.h-row');
      window.top0 = window.kept.getBoundingClientRect().top;
    }""")
    expect(page.locator(".h-tool[open]")).to_have_count(1)
    meanwhile(MessageFactory, session=session, kind="operator", text="Written meanwhile")
    page.clock.run_for(2500)
    page.clock.run_for(2500)
    expect(page.get_by_text("Written meanwhile")).to_be_attached()
    expect(page.locator(".h-tool[open]")).to_have_count(1)
    assert page.evaluate("window.kept.isConnected")
    assert page.evaluate("window.kept.getBoundingClientRect().top === window.top0")


def test_it_shows_an_edit_and_a_removal(live_server, page, session, meanwhile):
    page.goto(f"{live_server.url}/admin/sessions_app/session/{session.pk}/transcript/")
    rows = Message.objects.filter(session=session)
    edit = [{"type": "text", "text": "Edited by Ops"}]
    meanwhile(lambda: rows.filter(position=BLOCK + 5).update(parts=edit))
    meanwhile(lambda: rows.filter(position=BLOCK + 6).delete())
    page.clock.run_for(2500)
    expect(page.get_by_text("Edited by Ops").first).to_be_attached()
    expect(page.locator(".h-row")).to_have_count(58)


def test_it_asks_for_rows_only_when_the_pulse_moved(live_server, page, session):
    asked: list[str] = []
    address = f"{live_server.url}/admin/sessions_app/session/{session.pk}/transcript/"
    page.goto(address)
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(3):
        with page.expect_response(f"{address}pulse/"):
            page.clock.run_for(2000)
    assert address not in asked


def running(session: Session) -> Turn:
    return TurnFactory(
        session=session, state="running", started_at=timezone.now() - timedelta(seconds=5),
        finished_at=None, lease_owner="web:1:a", block=9,
    )  # fmt: skip


def test_it_keeps_the_board_and_stops_a_turn_from_it(live_server, page, session, meanwhile):
    page.goto(f"{live_server.url}/admin/board/")
    expect(page.get_by_text("Nothing runs or waits")).to_be_visible()
    turn = meanwhile(running, session=session)
    meanwhile(lambda: renew_presence(PresenceReport("web:1:a", 3, 128, 10)))
    page.clock.run_for(3000)
    row = page.locator(f"#turn-{turn.pk}")
    expect(row).to_contain_text("waiting for the first word")
    expect(page.locator("#board-caches")).to_contain_text("3 / 128")
    row.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("The turn is told to stop.")).to_be_visible()
    assert meanwhile(lambda: Turn.objects.get(pk=turn.pk).stop_requested_at) is not None
    page.get_by_role("button", name="Evict idle").click()
    expect(page.locator("#board-caches")).to_contain_text("Dropping idle agents")


def test_it_asks_nothing_while_nobody_looks(live_server, page):
    page.clock.pause_at(timezone.now() + timedelta(minutes=1))  # nothing was asked before
    page.goto(f"{live_server.url}/admin/board/")
    page.evaluate(HIDE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(5):
        page.clock.run_for(20_000)
    assert [url for url in asked if "/admin/" in url] == []
    with page.expect_response(f"{live_server.url}/admin/board/live/"):
        page.evaluate(SHOW)
