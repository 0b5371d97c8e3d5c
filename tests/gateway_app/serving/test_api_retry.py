"""Case B1 over HTTP: a message that is sent again after a crash is the same message."""

import signal

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Site

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
