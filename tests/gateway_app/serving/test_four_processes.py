"""Four servers on one database: no command needs the one that took the command before (case D1)."""

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Served, Site, Tab
from tests.gateway_app.serving.test_two_processes import ended
from tests.model_scripts import Json

pytestmark = pytest.mark.redis

SERVERS: Final = 4
NEW_PROMPT: Final = """
from gateway_app.models import Agent
from gateway_app.services.agents import save_agent_version
save_agent_version(
    agent=Agent.objects.get(is_default=True), model="", system_prompt="Be brief.",
    temperature=None, max_output_tokens=None, created_by_id=None,
)
"""


class Round:
    """A tab at each server, and the token for all of them; each command goes to the next one."""

    def __init__(self, servers: list[Served], tabs: list[Tab], token: str) -> None:
        self.servers, self.tabs, self.token = servers, tabs, token
        self._next = itertools.cycle(tabs)

    def ok(self, kind: str, **fields: Any) -> Json:
        reply = next(self._next).ask(kind, **fields)
        assert reply["ok"], (kind, reply)
        result: Json = reply["result"]
        return result

    def refused(self, kind: str, **fields: Any) -> str:
        reply = next(self._next).ask(kind, **fields)
        assert not reply["ok"], (kind, reply)
        return str(reply["error"]["code"])

    def finished(self, turn_id: str) -> Json:
        """The turn's end, which every tab is shown."""
        ends = [ended(tab, turn_id) for tab in self.tabs]
        assert all(end == ends[0] for end in ends)
        return ends[0]

    def sessions(self) -> list[Json]:
        """The only conversation, as each server tells it by each door."""
        header = {"Authorization": f"Bearer {self.token}"}
        found = [tab.ask("session.list")["result"]["sessions"] for tab in self.tabs]
        found += [one.get("/api/v1/sessions", headers=header).json()["sessions"]
                  for one in self.servers]  # fmt: skip
        assert all(one == found[0] for one in found)
        listed: list[Json] = found[0]
        return listed


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


@pytest.fixture
def env(model: FakeModelServer) -> dict[str, str]:
    return {
        "REDIS_URL": os.environ["REDIS_URL"],
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "sk-test",
    }


@pytest.fixture
def round_of(site: Site, env: dict[str, str]) -> Iterator[Round]:
    started = [site.start(**env) for _ in range(SERVERS)]
    for one in started:
        one.allow(400)
    servers, token = [one.ready() for one in started], site.token()
    with ExitStack() as stack:
        tabs = [stack.enter_context(Tab(one, Authorization=f"Bearer {token}")) for one in servers]
        for tab in tabs:
            tab.ask("hello", protocol="hermes.v1")
        yield Round(servers, tabs, token)
    assert [served.end() for served in servers] == [0] * SERVERS


def test_it_takes_each_command_at_another_server(
    site: Site, model: FakeModelServer, env: dict[str, str], round_of: Round
) -> None:
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}), Script(tokens=["Two"]))
    ask = round_of.ok
    session: Json = {"sessionId": ask("session.create", clientMessageId="s")["session"]["id"]}
    for tab in round_of.tabs:
        tab.ask("session.subscribe", **session)
    first = ask("message.send", **session, clientMessageId="1", content="First")
    for tab in round_of.tabs:
        tab.event("TEXT_MESSAGE_CONTENT")
    second = ask("message.send", **session, clientMessageId="2", content="Second")
    assert (first["status"], second["status"]) == ("running", "queued")
    again = ask("message.send", **session, clientMessageId="1", content="First")
    assert (again["turnId"], again["replayed"]) == (first["turnId"], True)
    ask("queue.edit", turnId=second["turnId"], content="Second, changed")
    ask("turn.stop", turnId=first["turnId"])
    assert round_of.finished(first["turnId"])["outcome"] == {"type": "cancelled"}
    assert round_of.finished(second["turnId"])["outcome"]["type"] == "success"
    gate.release()

    rows = ask("session.history", **session)["messages"]
    texts = [row["parts"][0]["text"] for row in rows]
    assert texts == ["First", "one ", "Second, changed", "Two"]
    edit: Json = {"messageId": rows[2]["id"], "content": "Another", "clientMessageId": "3"}
    edited = ask("message.edit", **session, **edit)
    round_of.finished(edited["turnId"])
    retried = ask("turn.retry", **session, turnId=edited["turnId"], clientMessageId="4")
    round_of.finished(retried["turnId"])
    ask("branch.select", **session, messageId=rows[2]["id"])
    rows = ask("session.history", **session)["messages"]
    active = [row["parts"][0]["text"] for row in rows if row["state"] == "active"]
    assert active == texts

    ask("session.update", **session, title="Named", model="openai:fake-2", pinned=True)
    [shown] = round_of.sessions()
    assert (shown["title"], shown["model"], shown["pinned"]) == ("Named", "openai:fake-2", True)
    other_model = ask("message.send", **session, clientMessageId="5", content="Third")
    round_of.finished(other_model["turnId"])
    assert model.requests[-1].json["model"] == "fake-2"
    ask("session.delete", **session)
    assert round_of.sessions() == []
    late: Json = {"clientMessageId": "6", "content": "Late"}
    assert round_of.refused("message.send", **session, **late) == "not_found"
    ask("session.restore", **session)
    assert [one["id"] for one in round_of.sessions()] == [session["sessionId"]]

    done = site.manage("shell", "-c", NEW_PROMPT, **env)
    assert done.returncode == 0, done.stdout
    for number, tab in enumerate(round_of.tabs):
        made = tab.ask("session.create", clientMessageId=f"n{number}")["result"]["session"]["id"]
        tab.ask("session.subscribe", sessionId=made)
        body = {"content": "Hello", "clientMessageId": f"h{number}"}
        sent = tab.ask("message.send", sessionId=made, **body)["result"]
        ended(tab, sent["turnId"])
        assert model.requests[-1].messages[0] == {"role": "system", "content": "Be brief."}
