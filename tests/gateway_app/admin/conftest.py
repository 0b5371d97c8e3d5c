"""The cast of the admin's tests: the owner, an operator with permissions, a stranger, the root."""

from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Session
from tests.factories import SessionFactory, StaffFactory, SuperuserFactory, UserFactory

EVERYTHING = [
    f"gateway_app.{verb}_{model}"
    for verb in ("view", "add", "change", "delete")
    for model in ("turn", "agent", "apitoken")
] + ["sessions_app.view_session", "sessions_app.delete_session"]


def logged_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def owner(db):
    return UserFactory(username="ann")


@pytest.fixture
def session(owner) -> Session:
    return SessionFactory(owner=owner, title="Refund for order 2291")


@pytest.fixture
def operator(db):
    return StaffFactory(username="ops", permissions=EVERYTHING)


@pytest.fixture
def root(db):
    return SuperuserFactory(username="root")


@pytest.fixture
def ops_client(operator) -> Client:
    return logged_in(operator)


@pytest.fixture
def root_client(root) -> Client:
    return logged_in(root)


@pytest.fixture
def statements() -> Callable[[Client, str], int]:
    """How many statements one page takes."""

    def count(client: Client, url: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(url).status_code == 200
        return len(captured)

    return count


class Page(HTMLParser):
    """What a browser would make of a page: its text, its tags, and what a strict policy refuses."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.refused: list[str] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = dict(attrs)
        runs = names.get("type") != "application/json"
        if (tag == "script" and "src" not in names and runs) or tag == "style":
            self.refused.append(tag)
        self.refused += [name for name in names if name == "style" or name.startswith("on")]
        addresses = [names.get(name) or "" for name in ("href", "src", "action", "formaction")]
        if any(address.strip().lower().startswith("javascript:") for address in addresses):
            self.refused.append("javascript:")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def page_of(response) -> Page:
    assert response.status_code == 200
    return Page(response.content.decode())
