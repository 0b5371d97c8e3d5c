"""A browser, the product it visits, and the model behind it: all real, all of our own."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Cookie, expect, sync_playwright

from tests.browser.chat_page import PATIENCE_MS, ChatPage
from tests.browser.served import PASSWORD, Served
from tests.browser.violations import watch_violations
from tests.fake_model_server import FakeModelServer
from tests.wire import Wire

CHROMIUM = "/usr/bin/chromium"

NewPage = Callable[..., ChatPage]


@pytest.fixture(scope="session")
def shared_model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


@pytest.fixture
def model(shared_model: FakeModelServer) -> Iterator[FakeModelServer]:
    """The model, with no answer left that another test had scripted."""
    shared_model.forget_scripts()
    yield shared_model


@pytest.fixture(scope="session")
def served(
    shared_model: FakeModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The product, started once; every test opens conversations of its own."""
    with Served(tmp_path_factory.mktemp("served"), shared_model.url) as served:
        yield served


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser a module: while it runs, its event loop keeps Django's ORM off this thread."""
    with sync_playwright() as playwright:
        path = CHROMIUM if Path(CHROMIUM).exists() else None
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def log_in(context: BrowserContext, base_url: str) -> None:
    """The context's cookies are those of admin."""
    page = context.new_page()
    page.goto(f"{base_url}/accounts/login/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{base_url}/")
    page.close()


def stay_logged_in(context: BrowserContext, base_url: str, cookies: list[Cookie]) -> None:
    """As `log_in`, by the cookies of the last login if they are good here; they are, after it."""
    context.add_cookies(cookies)
    if context.request.get(f"{base_url}/", max_redirects=0).status != HTTPStatus.OK:
        context.clear_cookies()
        log_in(context, base_url)
        cookies[:] = context.cookies()


@pytest.fixture(scope="session")
def last_login() -> list[Cookie]:
    """The cookies of the last login, at whichever server: a cookie knows no port."""
    return []


@pytest.fixture
def violations() -> Iterator[list[str]]:
    """Every breach of a content policy in this test's pages and frames; none may be left."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def visit(
    chromium: Browser, violations: list[str], last_login: list[Cookie]
) -> Iterator[Callable[..., NewPage]]:
    """`visit(base_url, **context options)` logs in; what it returns opens tabs of that browser.

    At the end no tab may have complained: no script error, no breach of the content policy.
    """
    contexts: list[BrowserContext] = []
    tabs: list[ChatPage] = []

    def enter(base_url: str, **options: object) -> NewPage:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        watch_violations(context, violations)
        stay_logged_in(context, base_url, last_login)

        def new_page() -> ChatPage:
            tabs.append(ChatPage(context.new_page(), base_url))
            return tabs[-1]

        return new_page

    yield enter
    complaints = [text for tab in tabs for text in tab.unexpected()]
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def new_page(visit: Callable[..., NewPage], served: Served) -> NewPage:
    """Opens tabs of one logged-in browser at the shared server."""
    return visit(served.url)


@pytest.fixture
def chat(new_page: NewPage) -> ChatPage:
    """One tab, at a new conversation."""
    return new_page().open()


@pytest.fixture
def wire(served: Served) -> Iterator[Wire]:
    """The way to the shared server, to be cut."""
    with Wire(served.port) as wire:
        yield wire
