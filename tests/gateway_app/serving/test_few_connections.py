"""PostgreSQL gives a server fewer connections than it could use: it makes do with those."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from gateway_app.config import GatewayConfig
from tests.fake_model_server import FakeModelServer, Script
from tests.gateway_app.serving.conftest import (
    PATIENCE_S,
    Served,
    Site,
    Tab,
    postgres_database,
)

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="a file has as many connections as one likes"
)

LANES: Final = GatewayConfig().postgres_threads


class FewConnections:
    """A role that owns the database at `url`, and of whose connections a test decides."""

    def __init__(self, database_url: str) -> None:
        self._postgres = psycopg.connect(database_url, autocommit=True)
        parts = urlsplit(database_url)
        database = parts.path.lstrip("/")
        self.name = f"{database}_few"
        self.url = urlunsplit(
            parts._replace(netloc=f"{self.name}:few@{parts.netloc.rpartition('@')[2]}")
        )
        self.sql(f"CREATE ROLE {self.name} LOGIN PASSWORD 'few'")
        self.sql(f"ALTER DATABASE {database} OWNER TO {self.name}")
        self.sql(f"ALTER SCHEMA public OWNER TO {self.name}")

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._postgres.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def limit(self, count: int) -> None:
        """From now on there are at most so many new ones; -1 for as many as are asked for."""
        self.sql(f"ALTER ROLE {self.name} CONNECTION LIMIT {count}")

    def end_all(self) -> None:
        """Those that are there are gone when this returns."""
        mine = f"FROM pg_stat_activity WHERE usename = '{self.name}'"
        self.sql(f"SELECT pg_terminate_backend(pid, 10000) {mine}")

    def use_all(self, tabs: Sequence[Tab], session_id: str) -> None:
        """As many connections as there are tabs have been used at the same time."""
        waiting = (
            f"SELECT 1 FROM pg_stat_activity WHERE usename = '{self.name}'"
            " AND wait_event_type = 'Lock'"
        )
        with self._postgres.transaction():
            self.sql(f"SELECT id FROM sessions_app_session WHERE id = '{session_id}' FOR UPDATE")
            for number, tab in enumerate(tabs):
                tab.send("session.update", sessionId=session_id, title=f"title {number}")
            while len(self.sql(waiting)) < len(tabs):
                self.sql("SELECT pg_stat_clear_snapshot()")
        for tab in tabs:
            assert tab.until(lambda frame: frame.get("re") == "session.update")["ok"]

    def drop(self) -> None:
        self.sql(f"ALTER ROLE {self.name} CONNECTION LIMIT -1")
        self.end_all()
        self.sql(f"REASSIGN OWNED BY {self.name} TO CURRENT_USER")
        self.sql(f"DROP OWNED BY {self.name}")
        self.sql(f"DROP ROLE {self.name}")
        self._postgres.close()


@pytest.fixture(scope="module")
def few() -> Iterator[FewConnections]:
    with postgres_database() as url:
        made = FewConnections(url)
        yield made
        made.drop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("few") / "data")


@pytest.fixture(scope="module")
def env(few: FewConnections) -> Iterator[dict[str, str]]:
    """The environment of the server, with its model."""
    with FakeModelServer() as model:
        model.default = Script(tokens=["one ", "two"])
        openai = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k"}
        yield {"DATABASE_URL": few.url, "HERMES_MODEL": "openai:fake-1", **openai}


@pytest.fixture(scope="module")
def served(few: FewConnections, site: Site, env: dict[str, str]) -> Iterator[Served]:
    """One server for all of these tests; it drains after the last."""
    served = site.start("--migrate", **env).ready()
    served.allow(10 * PATIENCE_S)
    ending = Thread(target=served.rest, daemon=True)  # it says more than a pipe holds
    ending.start()
    yield served
    served.process.terminate()
    ending.join()
    served.close()
    assert served.process.returncode == 0


@pytest.fixture(scope="module")
def header(served: Served, site: Site, env: dict[str, str]) -> dict[str, str]:
    """What opens it."""
    done = site.manage("apitoken", "create", "admin", **env)
    return {"Authorization": f"Bearer {done.stdout.splitlines()[-1]}"}


@pytest.fixture
def tabs(few: FewConnections, served: Served, header: dict[str, str]) -> Iterator[list[Tab]]:
    """One for each connection that turns may use; after the test there are enough again."""
    with ExitStack() as opened:
        tabs = [opened.enter_context(Tab(served, **header)) for _ in range(LANES)]
        for tab in tabs:
            tab.ask("hello", protocol="hermes.v1")
        yield tabs
    few.limit(-1)


def conversation(tab: Tab) -> str:
    made: str = tab.ask("session.create", clientMessageId=uuid4().hex)["result"]["session"]["id"]
    tab.ask("session.subscribe", sessionId=made)
    return made


def test_it_answers_with_a_single_connection(few: FewConnections, tabs: list[Tab]) -> None:
    tab, session_id = tabs[0], conversation(tabs[0])
    few.limit(1)
    few.end_all()
    for number in range(2 * LANES):
        message = {"sessionId": session_id, "clientMessageId": f"m{number}"}
        assert tab.ask("message.send", content="hello", **message)["ok"]
        assert tab.event("RUN_FINISHED")["outcome"] == {"type": "success"}


def test_it_begins_nothing_on_connections_that_were_ended(
    few: FewConnections, tabs: list[Tab]
) -> None:
    session_id = conversation(tabs[0])
    few.use_all(tabs, session_id)
    few.end_all()
    for tab in tabs:
        assert tab.ask("session.history", sessionId=session_id)["ok"]


def test_it_lets_go_of_connections_that_nobody_needs(
    few: FewConnections, served: Served, header: dict[str, str], tabs: list[Tab]
) -> None:
    """Pages have none left, until turns give theirs back."""
    few.limit(LANES)
    few.end_all()
    few.use_all(tabs, conversation(tabs[0]))
    assert served.get("/api/v1/me", headers=header, timeout=60).status_code == 200


def test_it_refuses_in_time_what_it_cannot_store_and_comes_back_by_itself(
    few: FewConnections, served: Served, tabs: list[Tab]
) -> None:
    tab, session_id = tabs[0], conversation(tabs[0])
    few.limit(0)
    few.end_all()
    message = {"sessionId": session_id, "clientMessageId": "m", "content": "hello"}
    refused = tab.ask("message.send", **message)
    assert refused["error"]["retryable"], refused
    ready = served.get("/readyz", timeout=60)
    assert ready.status_code == 503
    assert ready.json()["database"] != "ok"
    few.limit(-1)
    while not tab.ask("message.send", **message)["ok"]:
        pass
    assert tab.event("RUN_FINISHED")["outcome"] == {"type": "success"}
    while served.get("/readyz", timeout=60).status_code != 200:
        pass


@pytest.mark.usefixtures("served")
def test_it_says_at_start_that_there_are_few(
    few: FewConnections, site: Site, env: dict[str, str]
) -> None:
    few.limit(20)
    alone = site.start(**env).ready()
    assert alone.end() == 0
    few.limit(-1)
    [said] = [line for line in alone.said if "connections to PostgreSQL" in line]
    assert said == (
        "This server may open 32 connections to PostgreSQL (32 for each process), and there are"
        " 20: people would wait when all are in use. Set the CONNECTION LIMIT of the role"
        f" {few.name} to 32 or more."
    )
