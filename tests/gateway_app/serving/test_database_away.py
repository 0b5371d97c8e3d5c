"""PostgreSQL goes away amid an answer and comes back: a real server waits for it."""

from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.db import connection

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Site, Tab
from tests.wire import Wire

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="the database is a server there"
)


def finished(tab: Tab) -> int:
    """How many turns the tab has seen end."""
    kinds = [frame.get("event", {}).get("type") for frame in tab.frames]
    return kinds.count("RUN_FINISHED")


def test_it_waits_for_postgres_and_loses_nothing(empty_site: Site, database_url: str) -> None:
    gate = Gate()
    url = urlsplit(database_url)
    with FakeModelServer() as model, Wire(url.port or 5432) as wire:
        model.script(Script(tokens=["one ", "two"], gates={1: gate}))
        netloc = f"{url.netloc.rpartition('@')[0]}@127.0.0.1:{wire.port}"
        env = {
            "DATABASE_URL": urlunsplit(url._replace(netloc=netloc)),
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "k",
            "HERMES_MODEL": "openai:fake-1",
        }
        served = empty_site.start("--migrate", **env).ready()
        done = empty_site.manage("apitoken", "create", "admin", **env)
        with Tab(served, Authorization=f"Bearer {done.stdout.splitlines()[-1]}") as tab:
            tab.ask("hello", protocol="hermes.v1")
            made = tab.ask("session.create", clientMessageId="new")["result"]["session"]["id"]
            tab.ask("session.subscribe", sessionId=made)
            tab.ask("message.send", sessionId=made, clientMessageId="a", content="hello")
            tab.event("TEXT_MESSAGE_CONTENT")
            wire.silence()
            wire.drop()
            gate.release()
            tab.until(lambda frame: frame.get("type") == "storage" and not frame["storing"])
            assert served.get("/healthz").status_code == 200
            wire.mend()
            tab.event("RUN_FINISHED")
            for _ in range(20):  # one more connection may turn out to be broken: it is sent again
                more = {"sessionId": made, "clientMessageId": "b", "content": "more"}
                again = tab.ask("message.send", **more)
                if again["ok"]:
                    break
                assert again["error"]["retryable"], again
            assert again["ok"], again
            while finished(tab) < 2:  # also what came before the reply
                tab.until(lambda frame: "event" in frame)
        assert served.end() == 0
    with psycopg.connect(database_url) as postgres:
        found = postgres.execute(
            "SELECT kind, parts FROM sessions_app_message WHERE kind <> 'session_meta'"
            " ORDER BY position"
        ).fetchall()
    assert [kind for kind, _ in found] == ["user", "assistant", "user", "assistant"]
    assert "one two" in found[1][1]
