"""Real handshakes with a real server: the door, the drain, and plain Daphne."""

import signal
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import pytest
from websockets import ConnectionClosed, InvalidStatus

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import PATIENCE_S, Served, Site, Tab


@pytest.fixture
def served(site: Site) -> Served:
    return site.start().ready()


def cookie(served: Served) -> str:
    """The session cookie of whoever presses the printed link's button."""
    served.read_until("Log in as")
    link = served.read_until("http")
    with httpx2.Client(timeout=PATIENCE_S) as browser:
        browser.get(link)
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        browser.post(link, data=form, headers={"Origin": served.url})
        return f"sessionid={browser.cookies['sessionid']}"


def refusal(served: Served, path: str, **headers: str) -> int:
    with pytest.raises(InvalidStatus) as caught, Tab(served, path, **headers):
        pass
    return int(caught.value.response.status_code)


def test_it_answers_403_before_accept_on_every_path(served: Served) -> None:
    logged_in = cookie(served)
    for path in ("/ws/v1/", "/ws/v1", "/ws/v2/", "/", "/admin/", "/static/x.js"):
        assert refusal(served, path) == 403
        assert refusal(served, path, Authorization="Bearer hms_wrong") == 403
        assert refusal(served, path, Cookie=logged_in) == 403
        for origin in ("null", "http://evil.example", "http://localhost:1", f"{served.url}.evil"):
            assert refusal(served, path, Cookie=logged_in, Origin=origin) == 403
    assert refusal(served, "/ws/v2/", Cookie=logged_in, Origin=served.url) == 403
    assert served.end() == 0
    assert not any("Traceback" in line for line in served.said), served.said


def test_it_lets_a_page_and_a_program_in(site: Site, served: Served) -> None:
    with Tab(served, Cookie=cookie(served), Origin=served.url) as page:
        assert page.socket.subprotocol == "hermes.v1"
        assert page.ask("hello", protocol="hermes.v1")["result"]["user"]["name"] == "admin"
    token = site.token()
    with Tab(served, Authorization=f"Bearer {token}", Origin="null") as program:
        assert program.ask("hello", protocol="hermes.v1")["ok"]
    assert refusal(served, f"/ws/v1/?token={token}") == 403


def test_it_opens_a_conversation_that_is_larger_than_a_frame_may_be(site: Site) -> None:
    answer = ["a" * 500_000] * 5
    with FakeModelServer() as model:
        model.script(Script(tokens=answer))
        served = site.start(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test").ready()
        with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
            limit = tab.ask("hello", protocol="hermes.v1")["result"]["limits"]["maxFrameBytes"]
            send = {"content": "Go on", "clientMessageId": "a"}
            made = tab.ask("message.send", **send)["result"]["sessionId"]
            while not site.sql("SELECT 1 FROM sessions_app_message WHERE kind = 'assistant'"):
                tab.ask("ping")
            assert tab.ask("session.subscribe", sessionId=made)["result"]["mode"] == "snapshot"
            snapshot = tab.until(lambda frame: frame.get("type") == "snapshot")
            [text] = [row["parts"][0]["text"] for row in snapshot["messages"]]
            assert text == "".join(answer)
            assert len(text) > 2 * limit


def narrow_socket(served: Served) -> socket.socket:
    """One whose kernel keeps little for whoever does not read; by itself it keeps up to 32 MB."""
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    address = urlsplit(served.url)
    narrow.connect((address.hostname, address.port))
    return narrow


def test_it_closes_a_client_that_asks_and_never_reads(served: Served, site: Site) -> None:
    narrow = narrow_socket(served)
    with Tab(served, sock=narrow, Authorization=f"Bearer {site.token()}") as tab:
        tab.ask("hello", protocol="hermes.v1")
        with suppress(ConnectionClosed):
            for _ in range(400):
                tab.send("ping", t="a" * 200_000)
        tab.close_code()
        answered = sum(1 for frame in tab.frames if frame.get("re") == "ping")
        assert answered < 100


def test_it_drains_finishes_the_answer_and_says_4012(site: Site) -> None:
    gate = Gate()
    with FakeModelServer() as model:
        model.script(Script(tokens=("one ", "two"), gates={1: gate}))
        served = site.start(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test").ready()
        with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
            tab.ask("hello", protocol="hermes.v1")
            made = tab.ask("session.create", clientMessageId="s")["result"]["session"]["id"]
            tab.ask("session.subscribe", sessionId=made)
            send = {"sessionId": made, "content": "Go on"}
            tab.send("message.send", clientMessageId="a", **send)
            tab.event("TEXT_MESSAGE_CONTENT")
            served.process.send_signal(signal.SIGTERM)
            tab.until(lambda frame: frame.get("type") == "draining")
            assert (
                tab.ask("message.send", clientMessageId="b", **send)["error"]["code"] == "draining"
            )
            ready = served.get("/readyz")
            assert (ready.status_code, ready.json()["draining"]) == (503, True)
            assert served.get("/healthz").status_code == 200
            gate.release()
            tab.event("RUN_FINISHED")
            assert tab.close_code() == 4012
        assert served.rest() == 0
    [(state,)] = site.sql("SELECT state FROM gateway_app_turn")
    assert state == "completed"
    assert not any("Traceback" in line for line in served.said), served.said


def test_it_starts_the_gateway_on_the_first_call_under_plain_daphne(site: Site) -> None:
    token = site.token()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.fileno()
        command = ("-m", "daphne", "--fd", str(number), "hermes_site.asgi:application")
        served = site.keep(Served(site.data_dir, *command, inherit=(number,)))
        served.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert served.get("/readyz").json()["ready"] is True
        with Tab(served, Authorization=f"Bearer {token}") as tab:
            assert tab.ask("hello", protocol="hermes.v1")["ok"]
        served.end()
    assert not any("Traceback" in line for line in served.said), served.said


NONSENSE: list[str | bytes] = [
    "", " \n", "{", "null", "[" * 100_000, '{"type": "ping", "id": "1", "id": "2", "t": NaN}',
    '{"type": "ping", "id": "n", "t": 1e999}', '{"type": "no.such", "id": "u"}', b"\x00\xff",
    '{"type": "message.send", "id": "s", "clientMessageId": "s", "content": "\\ud800"}',
    '{"type": "message.send", "id": "' + "x" * 1_000_000 + '"}',
]  # fmt: skip


def test_it_answers_nonsense_over_a_real_socket_and_serves_on(site: Site) -> None:
    served = site.start().ready()
    token = f"Bearer {site.token()}"
    with Tab(served, Authorization=token) as witness, Tab(served, Authorization=token) as tab:
        assert witness.ask("hello", protocol="hermes.v1")["ok"]
        assert tab.ask("hello", protocol="hermes.v1")["ok"]
        for frame in NONSENSE:
            tab.socket.send(frame)
            reply = tab.until(lambda frame: "re" in frame)
            assert reply["error"]["code"] == "invalid_frame", frame[:80]
        tab.socket.send("x" * 1_500_000)
        assert tab.close_code() == 4009
        assert witness.ask("ping", t=1)["result"] == {"t": 1}
    assert served.get("/healthz").status_code == 200
    assert served.end() == 0
    assert not any("Traceback" in line for line in served.said), served.said
