"""kill -9 of a serving process: nothing that a person was shown or promised is lost."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Served, Site, Tab

TOKENS = ("one ", "two ", "three ", "four ", "five")
Frame = dict[str, Any]


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        yield server


def serve(site: Site, model: FakeModelServer) -> Served:
    return site.start(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test").ready()


def kill(served: Served) -> None:
    served.end(signal.SIGKILL)


def events_of(tab: Tab) -> list[Frame]:
    return [frame for frame in tab.frames if "event" in frame]


def text_of(frames: list[Frame], generation: int) -> str:
    """What one run showed."""
    shown, current = "", ""
    for frame in frames:
        event = frame["event"]
        if event["type"] == "RUN_STARTED":
            current = event["runId"]
        elif event["type"] == "TEXT_MESSAGE_CONTENT" and current.endswith(f".{generation}"):
            shown += event["delta"]
    return shown


def show(tab: Tab, text: str) -> None:
    """Returns once the tab has been shown so much of the first run."""
    while text_of(events_of(tab), 1) != text:
        tab.until(lambda frame: "event" in frame)


def open_tab(tab: Tab, session_id: str, after: int | None = None) -> Frame:
    tab.ask("hello", protocol="hermes.v1")
    fields = {} if after is None else {"after": after}
    reply: Frame = tab.ask("session.subscribe", sessionId=session_id, **fields)["result"]
    return reply


def transcript(site: Site) -> list[tuple[str, str, str]]:
    rows = site.sql("SELECT kind, state, parts FROM sessions_app_message ORDER BY position")
    return [
        (kind, state, "".join(part.get("text", "") for part in json.loads(parts)))
        for kind, state, parts in rows
        if kind != "session_meta"
    ]


@pytest.mark.parametrize("shown", [1, 2, 3, 4])
def test_it_runs_a_killed_turn_again_and_keeps_what_was_shown(
    site: Site, model: FakeModelServer, shown: int
) -> None:
    gates = {number: Gate() for number in range(1, len(TOKENS))}
    model.script(Script(tokens=TOKENS, gates=gates), Script(tokens=TOKENS))
    served, bearer = serve(site, model), f"Bearer {site.token()}"
    with Tab(served, Authorization=bearer) as tab:
        tab.ask("hello", protocol="hermes.v1")
        session_id = tab.ask("session.create", clientMessageId="s")["result"]["session"]["id"]
        tab.ask("session.subscribe", sessionId=session_id)
        sent = tab.ask("message.send", sessionId=session_id, content="Count", clientMessageId="c")[
            "result"
        ]
        tab.ask("message.send", sessionId=session_id, content="And on", clientMessageId="d")
        for number in range(1, shown + 1):
            show(tab, "".join(TOKENS[:number]))
            if number < shown:
                gates[number].release()
        kill(served)
        seen = events_of(tab)
    assert text_of(seen, 1) == "".join(TOKENS[:shown])

    served = serve(site, model)
    with Tab(served, Authorization=bearer) as tab:
        mode = open_tab(tab, session_id, after=seen[-1]["seq"])
        assert mode == {"mode": "replay", "from": seen[-1]["seq"]}
        for _ in range(2):
            tab.event("RUN_FINISHED")
        again = tab.ask("message.send", sessionId=session_id, content="Count", clientMessageId="c")[
            "result"
        ]
        assert (again["turnId"], again["replayed"]) == (sent["turnId"], True)
        rest = events_of(tab)
    with Tab(served, Authorization=bearer) as tab:
        assert open_tab(tab, session_id, after=0)["mode"] == "replay"
        for _ in range(2):
            tab.event("RUN_FINISHED")
        whole = events_of(tab)
    joined = seen + rest
    assert [frame["prev"] for frame in joined] == [0, *(frame["seq"] for frame in joined[:-1])]
    assert text_of(whole, 1) == "".join(TOKENS[:shown])
    assert text_of(whole, 2) == text_of(joined, 2) == "".join(TOKENS)
    failed = [f["event"] for f in whole if f["event"]["type"] == "RUN_ERROR"]
    assert [event["code"] for event in failed] == ["interrupted"]
    assert failed[0]["metadata"]["hermes"]["retrying"] is True
    assert transcript(site) == [
        ("user", "active", "Count"),
        ("assistant", "superseded", "".join(TOKENS[:shown])),
        ("assistant", "active", "".join(TOKENS)),
        ("user", "active", "And on"),
        ("assistant", "active", "Hello, world!"),
    ]
    for gate in gates.values():
        gate.release()


def test_it_answers_a_message_that_was_accepted_before_its_first_word(
    site: Site, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(headers_gate=gate), Script(tokens=TOKENS))
    served, bearer = serve(site, model), f"Bearer {site.token()}"
    with Tab(served, Authorization=bearer) as tab:
        tab.ask("hello", protocol="hermes.v1")
        tab.ask("message.send", content="Count", clientMessageId="c")
        model.request_sync(0)
        kill(served)
    served = serve(site, model)
    with Tab(served, Authorization=bearer) as tab:
        tab.ask("hello", protocol="hermes.v1")
        listed = tab.ask("session.list")["result"]["sessions"]
        tab.ask("session.subscribe", sessionId=listed[0]["id"], after=0)
        tab.event("RUN_FINISHED")
    gate.release()
    assert transcript(site) == [
        ("user", "active", "Count"),
        ("assistant", "active", "".join(TOKENS)),
    ]


def test_it_ends_a_turn_that_crashed_three_times(site: Site, model: FakeModelServer) -> None:
    gates = [Gate() for _ in range(3)]
    model.script(*(Script(tokens=TOKENS, gates={1: gate}) for gate in gates))
    served, bearer = serve(site, model), f"Bearer {site.token()}"
    with Tab(served, Authorization=bearer) as tab:
        tab.ask("hello", protocol="hermes.v1")
        sent = tab.ask("message.send", content="Count", clientMessageId="c")["result"]
    for number in range(3):
        with Tab(served, Authorization=bearer) as tab:
            open_tab(tab, sent["sessionId"], after=0)
            for _ in range(number + 1):
                tab.event("TEXT_MESSAGE_CONTENT")
        kill(served)
        served = serve(site, model)
    with Tab(served, Authorization=bearer) as tab:
        open_tab(tab, sent["sessionId"], after=0)
        tab.until(
            lambda frame: (
                frame.get("event", {}).get("metadata", {}).get("hermes", {}).get("retrying")
                is False
            )
        )
        snapshot = Tab(served, Authorization=bearer)
        with snapshot:
            open_tab(snapshot, sent["sessionId"])
            state = snapshot.until(lambda frame: frame.get("type") == "snapshot")
        assert state["running"] is None
        assert state["turns"][0]["state"] == "interrupted"
    rows = transcript(site)
    assert [row[:2] for row in rows] == [
        ("user", "active"),
        ("assistant", "superseded"),
        ("assistant", "superseded"),
        ("assistant", "active"),
        ("notice", "active"),
    ]
    for gate in gates:
        gate.release()


def test_it_obeys_a_stop_that_was_given_before_the_crash(
    site: Site, model: FakeModelServer
) -> None:
    gate = Gate()
    model.script(Script(tokens=TOKENS, gates={1: gate}))
    served, bearer = serve(site, model), f"Bearer {site.token()}"
    with Tab(served, Authorization=bearer) as tab:
        tab.ask("hello", protocol="hermes.v1")
        sent = tab.ask("message.send", content="Count", clientMessageId="c")["result"]
        tab.ask("session.subscribe", sessionId=sent["sessionId"], after=0)
        tab.event("TEXT_MESSAGE_CONTENT")
        kill(served)
    site.sql("UPDATE gateway_app_turn SET stop_requested_at = '2030-01-01 00:00:00'")
    served = serve(site, model)
    with Tab(served, Authorization=bearer) as tab:
        open_tab(tab, sent["sessionId"], after=0)
        assert tab.event("RUN_FINISHED")["outcome"] == {"type": "cancelled"}
    gate.release()
    assert transcript(site) == [("user", "active", "Count"), ("assistant", "active", "one ")]
