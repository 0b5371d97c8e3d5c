"""Whatever is sent over HTTP, the answer is JSON that says what is wrong, and no fault."""

import base64
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from gateway_app.api.errors import STATUSES
from gateway_app.host import GatewayHost
from tests.factories import SessionFactory
from tests.http_client import HttpClient

pytestmark = pytest.mark.django_db(transaction=True)

ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**31, 2**63, 2**64, 10**30, "", " ", "\x00", "a\x00b", "\ud800",
    "\ufeff", "\u202e", "%s", "'; DROP TABLE x; --", "../../etc/passwd", "x" * 10_000, "{}", [],
    [[]], [None], {}, {"": ""}, [{"type": "text", "text": "\x00"}], [{"type": "text"}],
    [{"type": "text", "text": "x"}] * 65,
]  # fmt: skip
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/sessions", {"clientMessageId": "1", "agent": "main", "title": "x"}),
    ("PATCH", "/sessions/{id}", {"title": "x", "pinned": True, "archived": False, "agent": "main",
                                 "model": "openai:fake-1"}),
    ("POST", "/sessions/{id}/messages", {"clientMessageId": "1", "content": "x", "agent": "main",
                                         "whenBusy": "queue"}),
]  # fmt: skip


async def a_session(owner: User) -> str:
    return str((await sync_to_async(SessionFactory)(owner=owner)).pk)


def checked(answer: Any, *, where: object) -> dict[str, Any]:
    """An answer that is no fault; its error, if it is one."""
    assert answer.status_code < 500, (where, answer.content)
    if answer.status_code == 204 or answer.status_code < 300:
        return {}
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) <= {"code", "message", "successorId"} and error["message"], where
    assert error["code"] in STATUSES, where
    assert "Traceback" not in error["message"]
    return error


@pytest.mark.parametrize(("method", "path", "body"), BODIES, ids=lambda one: str(one)[:24])
async def test_it_survives_odd_values_in_every_field(
    gateway: GatewayHost, owner: User, method: str, path: str, body: dict[str, Any]
) -> None:
    client = HttpClient(owner)
    path = path.format(id=await a_session(owner))
    for number, (name, value) in enumerate((name, value) for name in body for value in ODD):
        whole = body | {"clientMessageId": f"id-{number}"} if "clientMessageId" in body else body
        raw = json.dumps(whole | {name: value})
        checked(await client.ask(method, path, raw), where=(name, value))
    assert await gateway.runner.wait_idle(60)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (" ", 400), ("{", 400), ("nul", 400), ("[]", 422), ('"x"', 422), ("1" * 5000, 400),
        ("[" * 100_000, 400), ('{"a":' * 5000 + "1" + "}" * 5000, 400),
        ('{"clientMessageId": "\\ud800"}', 400), (b"\xff\xfe", 400), ("{}", 422),
        ('{"clientMessageId": 1}', 422), ("NaN", 400),
    ],
)  # fmt: skip
async def test_it_refuses_what_is_no_such_object(
    gateway: GatewayHost, owner: User, raw: str | bytes, status: int
) -> None:
    answer = await HttpClient(owner).ask("POST", "/sessions", raw)
    error = checked(answer, where=raw)
    assert answer.status_code == status, error
    assert error["code"] == "invalid_frame"


async def test_it_refuses_other_content_types_and_large_bodies(
    gateway: GatewayHost, owner: User
) -> None:
    client = HttpClient(owner)
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        body = {"clientMessageId": "x"}
        error = await client.refused(
            "POST", "/sessions", json.dumps(body), content_type=content_type
        )
        assert (error["status"], error["code"]) == (415, "unsupported"), content_type
    large = {"clientMessageId": "x", "title": "x" * 3_000_000}
    error = await client.refused("POST", "/sessions", large)
    assert (error["status"], error["code"]) == (413, "too_large")


async def test_it_takes_a_message_of_a_megabyte_and_a_half(
    gateway: GatewayHost, owner: User
) -> None:
    client = HttpClient(owner)
    path = f"/sessions/{await a_session(owner)}/messages"
    body = {"clientMessageId": "big", "content": "x" * 1_500_000}
    assert (await client.ask("POST", path, body)).status_code == 202
    assert await gateway.runner.wait_idle(60)


def cursor(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


SOMEBODY = "01920000-0000-7000-8000-000000000000"
CURSORS = [
    "x", "%00", "AAAA", "%F0%9F%9C%B2", cursor(None), cursor([1, 2]), cursor(["x", SOMEBODY]),
    cursor(["0001-01-01T00:00:00+00:00", SOMEBODY]), cursor(["2020-01-01", SOMEBODY]),
    cursor(["9999-12-31T23:59:59-12:00", SOMEBODY]), cursor([10**40, SOMEBODY]),
    cursor([-(10**40), SOMEBODY]), cursor([1e400, SOMEBODY]), cursor([2**63, SOMEBODY]),
    cursor([{}, SOMEBODY]), "=" * 9000, cursor(["2020-01-01T00:00:00+00:00", SOMEBODY + "\x00"]),
]  # fmt: skip
QUERIES = [
    "limit=0", "limit=101", "limit=-1", "limit=x", f"limit={10**30}", f"limit={'9' * 5000}",
    "limit=1.5", "limit=", "archived=perhaps", "query=%00", "query=%ED%A0%80", "query=%FF",
    "days=0", "days=367", "days=%00", "everyone=2", "form=../x", "form=", "unknown=1",
    f"query={'x' * 5000}", "limit=50&limit=60",
]  # fmt: skip


async def test_it_survives_odd_queries_and_cursors(gateway: GatewayHost, owner: User) -> None:
    client, session_id = HttpClient(owner), await a_session(owner)
    for path in ("/sessions", f"/sessions/{session_id}/messages", f"/sessions/{session_id}/turns",
                 f"/sessions/{session_id}/export", "/usage", "/me"):  # fmt: skip
        queries = [*QUERIES, *(f"{name}={one}" for one in CURSORS for name in ("cursor", "before"))]
        for query in queries:
            answer = await client.ask("GET", f"{path}?{query}")
            checked(answer, where=(path, query))
            answer.close()


@pytest.mark.parametrize(
    "path",
    [
        "/sessions/x", "/sessions/%00", "/sessions/../../admin", "/turns/1", "/nothing", "/",
        f"/sessions/{SOMEBODY.upper()}", f"/sessions/{SOMEBODY}/export/x", "/me/",
        "/sessions/" + "9" * 5000,
    ],
)  # fmt: skip
async def test_it_answers_unknown_addresses_in_json(
    gateway: GatewayHost, owner: User, path: str
) -> None:
    error = await HttpClient(owner).refused("GET", path)
    assert (error["status"], error["code"]) == (404, "not_found")
    assert error["message"]


async def test_it_answers_other_methods_in_json(gateway: GatewayHost, owner: User) -> None:
    client, session_id = HttpClient(owner), await a_session(owner)
    for method, path in (("PUT", "/sessions"), ("DELETE", "/me"), ("POST", "/usage"),
                         ("POST", f"/sessions/{session_id}"), ("PATCH", "/sessions"),
                         ("GET", f"/sessions/{session_id}/restore")):  # fmt: skip
        error = await client.refused(method, path)
        assert (error["status"], error["code"]) == (405, "unsupported"), path
    allowed = (await client.ask("PUT", "/sessions"))["Allow"]
    assert set(allowed.split(", ")) == {"GET", "POST"}


def test_it_answers_a_foreign_host_in_json() -> None:
    answer = Client().get("/api/v1/me", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_frame"


@pytest.mark.parametrize("path", ["/me", "/nothing"])
def test_it_tells_a_cache_that_another_may_be_answered_in_another_language(path: str) -> None:
    answer = Client().get(f"/api/v1{path}", headers={"Accept-Language": "de"})
    assert answer.headers["Content-Language"] == "de"
    assert "Accept-Language" in answer.headers["Vary"]


async def test_it_refuses_in_english_unless_another_language_is_asked_for(
    gateway: GatewayHost, owner: User
) -> None:
    client, path = HttpClient(owner), "/sessions/00000000-0000-0000-0000-000000000000"
    error = await client.refused("GET", path)
    assert error["message"] == "This conversation does not exist."
    german = {"Accept-Language": "de-AT,de;q=0.9"}
    error = await client.refused("GET", path, headers=german)
    assert (error["code"], error["message"]) == ("not_found", "Diese Unterhaltung gibt es nicht.")
    error = await client.refused("GET", "/nothing", headers=german)
    assert error["message"] == "Unter dieser Adresse gibt es nichts."
    error = await HttpClient().refused("GET", path, headers=german)
    assert error["message"] == "Melden Sie sich an, oder senden Sie ein API-Token."


@pytest.mark.parametrize(
    ("method", "path", "body", "said", "german"),
    [
        ("POST", "/sessions", {}, "clientMessageId is missing.", "clientMessageId fehlt."),
        (
            "POST", "/sessions", {"clientMessageId": 5},
            "clientMessageId must be text, not a whole number.",
            "clientMessageId muss Text sein, nicht eine ganze Zahl.",
        ),
        (
            "POST", "/sessions", {"clientMessageId": "x" * 200},
            "clientMessageId must have a length of at most 128.",
            "clientMessageId darf höchstens 128 lang sein.",
        ),
        (
            "POST", "/sessions", {"clientMessageId": "\0"},
            "clientMessageId holds a character that is not allowed.",
            "clientMessageId enthält ein Zeichen, das nicht erlaubt ist.",
        ),
        (
            "GET", "/sessions?limit=x", None,
            "limit must be a whole number.", "limit muss eine ganze Zahl sein.",
        ),
        (
            "GET", "/sessions?limit=101", None,
            "limit must be at most 100.", "limit darf höchstens 100 sein.",
        ),
        (
            "GET", "/sessions?archived=x", None,
            "archived must be true or false.", "archived muss wahr oder falsch sein.",
        ),
    ],
)  # fmt: skip
async def test_it_says_what_does_not_fit_in_the_readers_language(
    gateway: GatewayHost, owner: User, method: str, path: str, body: Any, said: str, german: str
) -> None:
    client = HttpClient(owner)
    for language, words in (("en", said), ("de-AT,de;q=0.9", german)):
        error = await client.refused(method, path, body, headers={"Accept-Language": language})
        assert (error["code"], error["message"]) == ("invalid_frame", words)
