"""Case B1: a message that is sent again over a restart or a crash is the same message."""

import signal
from contextlib import ExitStack
from typing import Any

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Served, Site, Tab

BODY = {"clientMessageId": "once", "content": "Hello"}


def test_it_takes_a_message_once_across_a_crash(site: Site) -> None:
    gate = Gate()
    with FakeModelServer() as model:
        model.script(Script(tokens=["Half ", "an answer"], gates={1: gate}), Script(tokens=["Yes"]))
        model_is = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test"}
        served = site.start(**model_is).ready()
        token = f"Authorization: Bearer {site.token()}"
        made = served.post("/api/v1/sessions", token, {"clientMessageId": "new"})
        path = f"/api/v1/sessions/{made['session']['id']}/messages"
        first = served.post(path, token, BODY)
        model.request_sync(0)
        served.end(signal.SIGKILL)
        gate.release()
        served = site.start(**model_is).ready()
        again = served.post(path, token, BODY)
        assert (again["turnId"], again["replayed"]) == (first["turnId"], True)
        model.request_sync(1)
        assert served.end() == 0
    kinds = site.sql("SELECT kind FROM sessions_app_message WHERE kind = 'user'")
    turns = site.sql("SELECT state, runs FROM gateway_app_turn")
    assert (kinds, turns) == ([("user",)], [("completed", 2)])


def repeat(served: Served, token: str, session_id: str, times: int) -> list[dict[str, Any]]:
    """The replies to the same send, by two sockets and over HTTP in turn."""
    header = f"Authorization: Bearer {token}"
    replies = []
    with ExitStack() as stack:
        tabs = [stack.enter_context(Tab(served, Authorization=f"Bearer {token}")) for _ in range(2)]
        for tab in tabs:
            tab.ask("hello", protocol="hermes.v1")
        for number in range(times):
            if number % 3 < 2:
                sent = tabs[number % 3].ask("message.send", sessionId=session_id, **BODY)
                replies.append(sent["result"])
            else:
                path = f"/api/v1/sessions/{session_id}/messages"
                replies.append(served.post(path, header, BODY))
    return replies


def test_it_takes_a_message_once_by_three_doors_across_a_restart(site: Site) -> None:
    """A hundred times; every reply is the first one's, but for what became of the turn."""
    gate, token = Gate(), site.token()
    with FakeModelServer() as model:
        model.script(Script(tokens=["Half ", "an answer"], gates={1: gate}))
        model_is = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test"}
        served = site.start(**model_is).ready()
        header = f"Authorization: Bearer {token}"
        made = served.post("/api/v1/sessions", header, {"clientMessageId": "new"})
        session_id = made["session"]["id"]
        before = repeat(served, token, session_id, 50)
        gate.release()
        assert served.end() == 0
        served = site.start(**model_is).ready()
        after = repeat(served, token, session_id, 50)
        assert served.end() == 0
        assert len(model.requests) == 1
    first = {"sessionId": session_id, "turnId": before[0]["turnId"]}
    assert before == [
        {**first, "status": "running", "replayed": number > 0} for number in range(50)
    ]
    assert after == [{**first, "status": "completed", "replayed": True}] * 50
    assert site.sql("SELECT state, runs FROM gateway_app_turn") == [("completed", 1)]
    rows = site.sql("SELECT kind FROM sessions_app_message ORDER BY position")
    assert rows == [("user",), ("assistant",), ("session_meta",)]
