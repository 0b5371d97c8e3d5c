"""A crowd on one SQLite file, while others delete, search and copy: nobody hears of a lock."""

import asyncio
import json
import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from websockets import Subprotocol
from websockets.asyncio.client import ClientConnection, connect

from tests.fake_model_server import FakeModelServer, Script
from tests.gateway_app.serving.conftest import PATIENCE_S, Site

pytestmark = pytest.mark.chaos

PEOPLE: Final = 50
SECONDS: Final = float(os.environ.get("HERMES_CROWD_S", "20"))
OLD_SESSIONS: Final = 200
ROWS: Final = 50
Json = dict[str, Any]


class Person:
    """One conversation, one message after another; keeps what went wrong."""

    def __init__(self, url: str, token: str, number: int) -> None:
        self._url, self._token, self._number = url.replace("http", "ws", 1), token, number
        self._ids = count(1)
        self.answered = 0
        self.waited_ms: list[float] = []
        """How long a ping took: the event loop's lag, and the network's."""

    async def live(self, until: float) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        async with connect(
            f"{self._url}/ws/v1/", subprotocols=[Subprotocol("hermes.v1")], proxy=None,
            additional_headers=headers, max_size=None, open_timeout=PATIENCE_S, ping_interval=None,
        ) as socket:  # fmt: skip
            await self._ask(socket, "hello", protocol="hermes.v1")
            made = await self._ask(socket, "session.create", clientMessageId=f"n{self._number}")
            session_id = made["session"]["id"]
            await self._ask(socket, "session.subscribe", sessionId=session_id)
            while time.monotonic() < until:
                number = next(self._ids)
                await self._ask(
                    socket, "message.send", sessionId=session_id, content=f"{number}",
                    clientMessageId=f"{self._number}-{number}",
                )  # fmt: skip
                await self._finished(socket)
                began = time.monotonic()
                await self._ask(socket, "ping")
                self.waited_ms.append((time.monotonic() - began) * 1000)
                await self._ask(socket, "session.list", query="old")

    async def _ask(self, socket: ClientConnection, kind: str, **fields: Any) -> Json:
        name = f"q{next(self._ids)}"
        await socket.send(json.dumps({"id": name, "type": kind, **fields}))
        while True:
            frame = await self._next(socket)
            if frame.get("re") == name:
                assert frame["ok"], frame
                result: Json = frame["result"]
                return result
            if frame.get("event", {}).get("type") == "RUN_FINISHED":
                self.answered += 1

    async def _finished(self, socket: ClientConnection) -> None:
        wanted = self.answered + 1
        while self.answered < wanted:
            event = (await self._next(socket)).get("event", {})
            assert event.get("type") != "RUN_ERROR", event
            self.answered += event.get("type") == "RUN_FINISHED"

    async def _next(self, socket: ClientConnection) -> Json:
        frame: Json = json.loads(await socket.recv())
        if "event" in frame:
            acks = {frame["sessionId"]: frame["seq"]}
            await socket.send(json.dumps({"type": "ack", "acks": acks}))
        return frame


def fill(site: Site) -> None:
    """Old conversations that are to be deleted in the midst of it all."""
    parts = json.dumps([{"type": "text", "text": "old words " * 20}])
    with closing(sqlite3.connect(site.file, timeout=PATIENCE_S)) as database, database:
        for number in range(OLD_SESSIONS):
            database.execute(
                "INSERT INTO sessions_app_session (key, owner_id, title) SELECT ?, id, 'old one'"
                " FROM auth_user",
                [f"agent:main:web:dm:1:old-{number}"],
            )
        database.execute(
            "INSERT INTO sessions_app_message (session_id, kind, parts) WITH RECURSIVE n(i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT s.id, 'user', ? FROM"
            " sessions_app_session s, n WHERE s.title = 'old one'",
            [ROWS, parts],
        )


def delete_in_bulk(site: Site, until: float) -> int:
    """Twenty conversations in one transaction, again and again."""
    gone = 0
    with closing(sqlite3.connect(site.file, timeout=PATIENCE_S)) as database:
        while time.monotonic() < until and gone < OLD_SESSIONS:
            some = "SELECT id FROM sessions_app_session WHERE title = 'old one' LIMIT 20"
            with database:
                ids = [row[0] for row in database.execute(some)]
                marks = ", ".join("?" * len(ids))
                database.execute(
                    f"DELETE FROM sessions_app_message WHERE session_id IN ({marks})", ids
                )
                gone += database.execute(
                    f"DELETE FROM sessions_app_session WHERE id IN ({marks})", ids
                ).rowcount
            time.sleep(0.5)
    return gone


def back_up(site: Site, until: float, copy: Path) -> int:
    """Whole copies, one after another, each of them sound."""
    copies = 0
    while time.monotonic() < until:
        with closing(sqlite3.connect(site.file)) as source, closing(sqlite3.connect(copy)) as there:
            source.backup(there, pages=200)
            assert there.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        copies += 1
        time.sleep(1)
    return copies


def lag_ms(metrics: str, share: float) -> float:
    """The bound of the bucket in which this share of the event loop's waits ends."""
    found = re.findall(r'hermes_event_loop_lag_seconds_bucket\{le="(\S+)"\} (\S+)', metrics)
    buckets = [(float(bound), float(count)) for bound, count in found]
    whole = buckets[-1][1]
    return next(bound for bound, count in buckets if count >= share * whole) * 1000


async def test_it_serves_a_crowd_while_others_delete_search_and_copy(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeModelServer() as model:
        model.default = Script(
            tokens=[f"word{number} " for number in range(20)], token_delay_s=0.05
        )
        served = site.start(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test").ready()
        token = site.token()
        fill(site)
        until = time.monotonic() + SECONDS
        people = [Person(served.url, token, number) for number in range(PEOPLE)]
        beside = [
            asyncio.create_task(asyncio.to_thread(delete_in_bulk, site, until)),
            asyncio.create_task(asyncio.to_thread(back_up, site, until, tmp_path / "copy.sqlite3")),
        ]
        served.watchdog.cancel()
        await asyncio.gather(*(person.live(until) for person in people))
        gone, copies = [await task for task in beside]
        metrics = (await asyncio.to_thread(served.get, "/metrics")).text
        assert served.end() == 0
    answered = sum(person.answered for person in people)
    states = site.sql("SELECT state, count(*) FROM gateway_app_turn GROUP BY state")
    assert states == [("completed", answered)]
    assert answered >= PEOPLE
    assert gone > 0
    assert copies > 0
    said = "\n".join(served.said)
    assert "database is locked" not in said
    assert "Traceback" not in said, said[-3000:]
    waited = sorted(ms for person in people for ms in person.waited_ms)
    p99 = waited[len(waited) * 99 // 100]
    late = " and ".join(f"{lag_ms(metrics, share):g}" for share in (0.5, 0.99))
    with capsys.disabled(), suppress(BlockingIOError):
        print(  # noqa: T201
            f"\n{answered} answers, {gone} deleted, {copies} copies, ping p99 {p99:.0f} ms,"
            f" the event loop late by less than {late} ms (p50, p99)"
        )
    assert p99 < 2000
