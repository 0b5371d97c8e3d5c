"""Two servers on one file: turns alternate between them, and stops cross from one to the other."""

import json
import os
import random
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import pytest

from gateway_app.providers.openai_chat import OpenAIChatWire
from sessions_app.models import BLOCK
from sessions_app.signals import TranscriptRow
from tests.coherence.oracle import expected_pieces
from tests.fake_model_server import FakeModelServer, Script
from tests.gateway_app.serving.conftest import Site, Tab
from tests.gateway_app.serving.test_workers import DEAF, configured
from tests.model_scripts import Json

pytestmark = pytest.mark.redis

TURNS: Final = 50
STOPS: Final = 200


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


@pytest.fixture
def tabs(site: Site, model: FakeModelServer) -> Iterator[list[Tab]]:
    """A tab at each of two servers, both in one conversation."""
    env = {
        "REDIS_URL": os.environ["REDIS_URL"],
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "sk-test",
        **configured(**DEAF),
    }
    both = [site.start(**env).ready() for _ in range(2)]
    bearer = f"Bearer {site.token()}"
    with Tab(both[0], Authorization=bearer) as one, Tab(both[1], Authorization=bearer) as two:
        one.ask("hello", protocol="hermes.v1")
        two.ask("hello", protocol="hermes.v1")
        made = one.ask("session.create", clientMessageId="s")["result"]["session"]["id"]
        for tab in (one, two):
            tab.ask("session.subscribe", sessionId=made)
        yield [one, two]
    assert [served.end() for served in both] == [0, 0]


def session_of(site: Site) -> str:
    [(session_id,)] = site.sql("SELECT id FROM sessions_app_session")
    return str(UUID(session_id))


def say(tab: Tab, session_id: str, text: str) -> str:
    reply = tab.ask("message.send", sessionId=session_id, content=text, clientMessageId=f"c-{text}")
    return str(reply["result"]["turnId"])


def ended(tab: Tab, turn_id: str) -> Json:
    """The last event of the turn, also if it came while something else was waited for."""

    def is_it(frame: Json) -> bool:
        kind = frame.get("event", {}).get("type")
        return frame.get("turnId") == turn_id and kind in {"RUN_FINISHED", "RUN_ERROR"}

    found = next((frame for frame in tab.frames if is_it(frame)), None) or tab.until(is_it)
    event: Json = found["event"]
    return event


def acknowledge(site: Site, tabs: list[Tab], session_id: str) -> None:
    """Both tabs owe nothing, whatever they have read."""
    [(seq,)] = site.sql("SELECT event_seq FROM sessions_app_session")
    for tab in tabs:
        tab.send("ack", acks={session_id: seq})


def rebuilt(site: Site, turn_id: str) -> list[Json]:
    """The request of a turn, made anew from the rows that stood before its answer."""
    [(block,)] = site.sql("SELECT block FROM gateway_app_turn WHERE id = ?", UUID(turn_id).hex)
    rows = site.sql(
        "SELECT id, position, kind, state, parts, sent_parts FROM sessions_app_message"
        " WHERE state = 'active' AND kind NOT IN ('session_meta', 'note')"
        " AND position <= ? ORDER BY position",
        block * BLOCK + 1,
    )
    visible = [TranscriptRow(UUID(row[0]), *row[1:]) for row in rows]
    return [json.loads(piece) for piece in expected_pieces(visible, OpenAIChatWire(), None)]


class Others:
    """Somebody with a SQL client. Each returns whether it took anything back."""

    def __init__(self, site: Site, rng: random.Random) -> None:
        self._site, self._rng, self._numbers = site, rng, iter(range(10_000))

    def act(self) -> bool:
        way: Any = self._rng.choice([self._append, self._append, self._edit, self._delete])
        return bool(way())

    def _parts(self) -> str:
        return json.dumps([{"type": "text", "text": f"from outside {next(self._numbers)}"}])

    def _append(self) -> bool:
        self._site.sql(
            "INSERT INTO sessions_app_message (session_id, kind, parts)"
            " SELECT id, 'operator', ? FROM sessions_app_session",
            self._parts(),
        )
        return False

    def _one(self) -> str:
        rows = self._site.sql(
            "SELECT id FROM sessions_app_message WHERE state = 'active' AND kind <> 'session_meta'"
        )
        return str(self._rng.choice(rows)[0])

    def _edit(self) -> bool:
        self._site.sql(
            "UPDATE sessions_app_message SET parts = ? WHERE id = ?", self._parts(), self._one()
        )
        return True

    def _delete(self) -> bool:
        self._site.sql("DELETE FROM sessions_app_message WHERE id = ?", self._one())
        return True


def test_it_asks_what_the_database_holds_whichever_process_asks(
    site: Site, model: FakeModelServer, tabs: list[Tab]
) -> None:
    """Case D2: what was appended costs its own tokens, and nothing else is sent anew."""
    session_id, rng = session_of(site), random.Random(5)
    others, rewritten, before = Others(site, rng), True, None
    model.default = lambda body: Script(tokens=[f"answer {len(body['messages'])}"])
    for number in range(TURNS):
        turn_id = say(tabs[number % 2], session_id, f"question {number}")
        finished = ended(tabs[number % 2], turn_id)
        sent = model.requests[-1].messages[1:]
        assert sent == rebuilt(site, turn_id), number
        verdict = finished["metadata"]["hermes"]["cache"]["verdict"]
        if before is not None and not rewritten:
            assert sent[: len(before)] == before
            assert verdict in {"reuse", "catch_up", "reload"}
        before = sent
        acknowledge(site, tabs, session_id)
        rewritten = rng.random() < 0.7 and others.act()
    assert len(model.requests) == TURNS


def test_it_answers_each_message_that_follows_a_stop_from_elsewhere(
    site: Site, model: FakeModelServer, tabs: list[Tab]
) -> None:
    """Case E54, across processes: the stop and the message come within 50 ms."""
    session_id = session_of(site)
    model.default = lambda body: (
        Script(tokens=["never ", "ends"], token_delay_s=30)
        if str(body["messages"][-1]["content"]).startswith("stop")
        else Script(tokens=["its own answer"])
    )
    for number in range(STOPS):
        here, there = tabs[number % 2], tabs[1 - number % 2]
        first = say(here, session_id, f"stop {number}")
        assert there.ask("turn.stop", sessionId=session_id)["ok"]
        second = say(there, session_id, f"answer {number}")
        assert ended(here, first)["outcome"]["type"] == "cancelled"
        assert ended(there, second)["outcome"]["type"] == "success"
        acknowledge(site, tabs, session_id)
    rows = site.sql(
        "SELECT count(*) FROM sessions_app_message WHERE kind = 'assistant' AND finish = 'stop'"
    )
    assert rows == [(STOPS,)]
