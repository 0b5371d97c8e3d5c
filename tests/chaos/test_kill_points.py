"""kill -9 at each point of a turn's life: what a person finds once the server is back.

The table of docs/scaling.md is this file's. A point is where the model's gate, or a lock on the
database, holds the server when it is killed.
"""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tests.ag_ui_verifier import verify_frames
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.serving.conftest import Served, Site, Tab
from tests.toolbox.diary import DIARY, HOLD, read_diary
from tests.viewer import Viewer

pytestmark = pytest.mark.chaos

WITHIN_S: Final = 20
"""Seconds from when the next process is ready to the outcome that is documented."""
Json = dict[str, Any]
CALL: Final = [ToolCall("a1", "look", ['{"where": ', '"left"}'])]


class Life:
    """One conversation with one server; `kill` ends the server."""

    def __init__(self, site: Site, model: FakeModelServer, held: ExitStack) -> None:
        self.site, self.model, self.held = site, model, held
        self.diary, self.hold = site.data_dir.parent / "calls", site.data_dir.parent / "hold"
        self.hold.mkdir()
        self.served = self._serve()
        self.bearer = f"Bearer {site.token()}"
        self.tab = held.enter_context(Tab(self.served, Authorization=self.bearer))
        self.tab.ask("hello", protocol="hermes.v1")
        made = self.tab.ask("session.create", clientMessageId="s")["result"]["session"]
        self.session_id: str = made["id"]
        self.tab.ask("session.subscribe", sessionId=self.session_id)

    def _serve(self) -> Served:
        return self.start().ready()

    def start(self) -> Served:
        return self.site.start(
            OPENAI_BASE_URL=self.model.url, OPENAI_API_KEY="sk-test",
            DJANGO_SETTINGS_MODULE="tests.toolbox.settings",
            **{DIARY: str(self.diary), HOLD: str(self.hold)},
        )  # fmt: skip

    def send(self, text: str, way: str = "queue") -> str:
        result = self.tab.ask("message.send", **self.message(text, way))["result"]
        return str(result["turnId"])

    def message(self, text: str, way: str = "queue") -> Json:
        return {
            "sessionId": self.session_id, "content": text, "clientMessageId": f"c-{text}",
            "whenBusy": way,
        }  # fmt: skip

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else can write to the database."""
        with closing(sqlite3.connect(self.site.file, isolation_level=None)) as database:
            database.execute("PRAGMA busy_timeout = 60000")
            database.execute("BEGIN IMMEDIATE")
            yield
            database.execute("ROLLBACK")

    def kill(self) -> None:
        self.served.end(signal.SIGKILL)
        self.tab.close_code()

    def come_back(self) -> list[Json]:
        """The server is there again, and nothing is left to do; every frame the person got."""
        self.served, began = self._serve(), time.monotonic()
        seen = [frame for frame in self.tab.frames if "event" in frame]
        viewer = Viewer().take(seen)
        with Tab(self.served, Authorization=self.bearer) as tab:
            tab.ask("hello", protocol="hermes.v1")
            tab.ask("session.subscribe", sessionId=self.session_id, after=viewer.seq)
            tab.ask("message.send", **self.message("hello"))  # whoever is in doubt sends again
            taken = 0
            while self._open():
                tab.ask("ping")
                assert time.monotonic() - began < WITHIN_S
            last = self.site.sql("SELECT event_seq FROM sessions_app_session")[0][0]
            while viewer.take(tab.frames[taken:]).seq < last:
                taken = len(tab.frames)
                tab.until(lambda frame: "event" in frame)
        self._compare(viewer)
        return seen + [frame for frame in tab.frames if "event" in frame]

    def _open(self) -> int:
        found = self.site.sql(
            "SELECT count(*) FROM gateway_app_turn WHERE state IN ('queued', 'running')"
        )
        return int(found[0][0])

    def _compare(self, viewer: Viewer) -> None:
        """What the person sees is what is stored."""
        rows = self.site.sql(
            "SELECT kind, state, parts FROM sessions_app_message WHERE kind <> 'session_meta'"
            " ORDER BY position, id"
        )
        shown = [(row["kind"], row["state"], row["parts"]) for row in viewer.state["messages"]]
        assert shown == [(kind, state, json.loads(parts)) for kind, state, parts in rows]

    def calls(self) -> list[str]:
        """The calls that were made, as often as they were."""
        return sorted(call for _, call, _ in read_diary(self.diary))

    def results(self) -> list[str]:
        """What is said of each call."""
        found = self.site.sql("SELECT parts FROM sessions_app_message WHERE kind = 'tool'"
                              " ORDER BY position")  # fmt: skip
        return [json.loads(parts)[0]["content"].partition(":")[0] for (parts,) in found]

    def states(self) -> list[str]:
        return [state for (state,) in self.site.sql(
            "SELECT state FROM gateway_app_turn ORDER BY accepted_seq")]  # fmt: skip

    def rows(self) -> list[str]:
        """`kind text`, with a mark for what is no longer active."""
        found = self.site.sql(
            "SELECT kind, state, parts FROM sessions_app_message WHERE kind <> 'session_meta'"
            " ORDER BY position, id"
        )
        return [
            f"{'(' if state != 'active' else ''}{kind}"
            f" {''.join(part.get('text', '') for part in json.loads(parts))}".strip()
            for kind, state, parts in found
        ]


@dataclass
class Point:
    """`bring` takes the conversation there; the server dies; the rest is what must be found."""

    bring: Callable[[Life], None]
    rows: list[str]
    states: list[str] = field(default_factory=lambda: ["completed"])
    calls: list[str] = field(default_factory=list)
    results: list[str] | None = None


def _answered(*before: str) -> list[str]:
    return ["user hello", *before, "assistant again"]


def _held(life: Life, *, shown: str = "", **script: Any) -> None:
    """The first run stands at a gate, with so much shown; the second one answers "again"."""
    life.model.script(Script(**script))
    life.send("hello")
    life.model.request_sync(0)
    while shown not in "".join(_deltas(life.tab)):
        life.tab.until(lambda frame: "event" in frame)


def _deltas(tab: Tab) -> list[str]:
    return [str(frame.get("event", {}).get("delta", "")) for frame in tab.frames]


def during_accept(life: Life) -> None:
    with life.locked():
        life.tab.send("message.send", **life.message("hello"))
        life.tab.ask("ping")
        life.served.process.kill()


def after_accept(life: Life) -> None:
    _held(life, headers_gate=Gate())


def before_the_first_token(life: Life) -> None:
    _held(life, gates={0: Gate()})


def mid_reasoning(life: Life) -> None:
    _held(life, shown="Well", reasoning=["Well, ", "so"], gates={1: Gate()})


def mid_text(life: Life) -> None:
    _held(life, shown="one", tokens=["one ", "two"], gates={1: Gate()})


def mid_call(life: Life) -> None:
    _held(life, shown="look", tokens=["I look "], tool_calls=CALL, gates={2: Gate()})


def mid_tool(life: Life, *others: ToolCall) -> None:
    """The first call hangs, and the others have ended."""
    life.site.sql("UPDATE gateway_app_agentversion SET tools = 'look'")
    os.mkfifo(life.hold / "left")
    life.model.script(Script(tokens=["I look "], tool_calls=[*CALL, *others]))
    life.send("hello")
    for _ in others:
        life.tab.event("TOOL_CALL_RESULT")
    while len(life.calls()) < 1 + len(others):
        life.tab.ask("ping")


def mid_tool_with_another(life: Life) -> None:
    mid_tool(life, ToolCall("a2", "look", ['{"where": "right"}']))


def during_the_steps_commit(life: Life) -> None:
    gate = Gate()
    _held(life, shown="look", tokens=["I look "], tool_calls=CALL, gates={2: gate})
    with life.locked():
        gate.release()
        life.model.requests[0].ended.wait_sync()
        life.served.process.kill()


def after_the_steps_commit(life: Life) -> None:
    life.model.script(Script(tokens=["I look "], tool_calls=CALL), Script(headers_gate=Gate()))
    life.send("hello")
    life.model.request_sync(1)


def mid_text_after_a_step(life: Life) -> None:
    life.model.script(
        Script(tokens=["I look "], tool_calls=CALL), Script(tokens=["one ", ""], gates={1: Gate()})
    )
    life.send("hello")
    while "one " not in _deltas(life.tab):
        life.tab.until(lambda frame: "event" in frame)


def during_a_flush(life: Life) -> None:
    gate = Gate()
    _held(life, shown="one", tokens=["one ", "two ", "three"], gates={1: gate, 2: Gate()})
    with life.locked():
        gate.release()
        life.tab.ask("ping")
        life.served.process.kill()


def before_the_final_commit(life: Life) -> None:
    _held(life, shown="one", tokens=["one"], end_gate=Gate())


def during_the_final_commit(life: Life) -> None:
    gate = Gate()
    _held(life, shown="one", tokens=["one"], end_gate=gate)
    with life.locked():
        gate.release()
        life.model.requests[0].ended.wait_sync()
        life.tab.ask("ping")
        life.served.process.kill()


def after_the_final_commit(life: Life) -> None:
    life.model.script(Script(tokens=["again"]))
    life.send("hello")
    life.tab.event("RUN_FINISHED")


def with_a_queue(life: Life) -> None:
    mid_text(life)
    life.send("later")


def with_a_steering_message(life: Life) -> None:
    mid_text(life)
    life.send("left!", "steer")


def after_an_interrupt(life: Life) -> None:
    """The order to stop is stored, and nobody was there to obey it."""
    mid_text(life)
    life.site.sql("UPDATE gateway_app_turn SET stop_requested_at = '2030-01-01 00:00:00'")
    life.served.process.kill()


def during_the_drain(life: Life) -> None:
    mid_text(life)
    life.served.process.send_signal(signal.SIGTERM)
    life.tab.until(lambda frame: frame.get("type") == "draining")


def during_recovery(life: Life) -> None:
    """The next server dies as it takes the turn over."""
    mid_text(life)
    life.served.process.kill()
    life.served.process.wait()
    with life.locked():
        taking = life.start()
        time.sleep(3)  # it cannot say where it stands: it waits for the lock
        taking.process.kill()


POINTS: Final = {
    "during the accept": Point(during_accept, _answered()),
    "after the accept": Point(after_accept, _answered()),
    "before the first token": Point(before_the_first_token, _answered()),
    "mid reasoning": Point(mid_reasoning, _answered("(assistant Well,")),
    "mid text": Point(mid_text, _answered("(assistant one")),
    "mid tool call": Point(mid_call, _answered("(assistant I look")),
    "mid tool": Point(
        mid_tool, _answered("assistant I look", "tool"), calls=["a1"],
        results=["The outcome is unknown"],
    ),
    "mid tool, with a second call that had ended": Point(
        mid_tool_with_another, _answered("assistant I look", "tool", "tool"), calls=["a1", "a2"],
        results=["The outcome is unknown", "Nothing is right."],
    ),
    "during the step's commit": Point(during_the_steps_commit, _answered("(assistant I look")),
    "after the step's commit": Point(
        after_the_steps_commit, _answered("assistant I look", "tool")
    ),
    "mid text after a step": Point(
        mid_text_after_a_step, _answered("assistant I look", "tool", "(assistant one")
    ),
    "during a flush": Point(during_a_flush, _answered("(assistant one")),
    "before the final commit": Point(before_the_final_commit, _answered("(assistant one")),
    "during the final commit": Point(during_the_final_commit, _answered("(assistant one")),
    "after the final commit": Point(after_the_final_commit, _answered()),
    "with a queue": Point(
        with_a_queue,
        [*_answered("(assistant one"), "user later", "assistant again"],
        ["completed", "completed"],
    ),
    "with a steering message": Point(
        with_a_steering_message,
        [*_answered("(assistant one"), "user left!", "assistant again"],
        ["completed", "completed"],
    ),
    "after a stop was stored": Point(after_an_interrupt, ["user hello", "assistant one"],
                                     ["stopped"]),
    "during the drain": Point(during_the_drain, _answered("(assistant one")),
    "during the recovery": Point(during_recovery, _answered("(assistant one")),
}  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_it_finds_what_is_promised_after_a_kill(site: Site, point: str) -> None:
    wanted = POINTS[point]
    with FakeModelServer() as model, ExitStack() as held:
        life = Life(site, model, held)
        wanted.bring(life)
        life.kill()
        model.forget_scripts()
        model.default = Script(tokens=["again"])
        frames = life.come_back()
        assert life.rows() == wanted.rows
        assert life.states() == wanted.states
        assert life.calls() == wanted.calls
        assert wanted.results in (None, life.results())
        verify_frames(frames)
        assert [frame["prev"] for frame in frames] == [0, *(one["seq"] for one in frames[:-1])]
