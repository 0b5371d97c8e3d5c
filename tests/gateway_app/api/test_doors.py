"""Who is let in over HTTP, and that nobody reaches what is not theirs."""

from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from gateway_app import credentials
from gateway_app.api.routes import api
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from sessions_app.models import Message, Session
from tests.factories import (
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    StaffFactory,
    SuperuserFactory,
    TurnFactory,
    UserFactory,
)
from tests.http_client import HttpClient

pytestmark = pytest.mark.django_db(transaction=True)


SEND = {"clientMessageId": "m", "content": "Hello"}
ABOUT_ONE: list[tuple[str, str, Any]] = [
    ("GET", "/sessions/{session_id}", None),
    ("PATCH", "/sessions/{session_id}", {"title": "mine"}),
    ("DELETE", "/sessions/{session_id}", None),
    ("POST", "/sessions/{session_id}/restore", None),
    ("GET", "/sessions/{session_id}/messages", None),
    ("POST", "/sessions/{session_id}/messages", SEND),
    ("GET", "/sessions/{session_id}/turns", None),
    ("GET", "/sessions/{session_id}/export", None),
    ("GET", "/turns/{turn_id}", None),
    ("POST", "/turns/{turn_id}/stop", None),
]
"""Every operation that names a session or a turn."""


def test_it_tries_every_operation_that_names_something() -> None:
    named = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, operations in api.get_openapi_schema()["paths"].items()
        for method in operations
        if "{" in path
    }
    assert named == {(method, path) for method, path, _ in ABOUT_ONE}


def theirs(owner: User) -> dict[str, str]:
    """The owner's session with a message, a turn that ended, and one that waits."""
    session = SessionFactory(owner=owner, title="a canary")
    MessageFactory(session=session, text="a canary")
    TurnFactory(session=session)
    waiting = QueuedTurnFactory(session=session)
    return {"session_id": str(session.pk), "turn_id": str(waiting.pk)}


def everything() -> list[Any]:
    """Whatever a request could change."""
    sessions = Session.objects.values_list("pk", "title", "revision", "event_seq", "deleted_at")
    turns = Turn.objects.order_by("pk").values_list("pk", "state", "stop_requested_at")
    return [list(sessions), list(turns), list(Message.objects.values_list("pk", "state"))]


def _operator() -> User:
    permissions = ["gateway_app.view_turn", "sessions_app.view_session"]
    user: User = StaffFactory(permissions=permissions)
    return user


@pytest.mark.parametrize("make", [UserFactory, _operator, SuperuserFactory])
async def test_it_knows_nothing_of_another_person(
    gateway: GatewayHost, owner: User, make: Any
) -> None:
    ids = await sync_to_async(theirs)(owner)
    before = await sync_to_async(everything)()
    other = HttpClient(await sync_to_async(make)())
    for method, path, body in ABOUT_ONE:
        error = await other.refused(method, path.format(**ids), body)
        assert (error["status"], error["code"]) == (404, "not_found"), path
        unknown = {name: str(uuid4()) for name in ids}
        assert error == await other.refused(method, path.format(**unknown), body), path
    assert (await other.ok("GET", "/sessions"))["sessions"] == []
    assert (await other.ok("GET", "/sessions?query=canary"))["sessions"] == []
    assert await sync_to_async(everything)() == before


async def test_it_lets_nobody_in_without_a_credential(gateway: GatewayHost, owner: User) -> None:
    ids = await sync_to_async(theirs)(owner)
    token = await sync_to_async(credentials.create_token)(user=owner)
    nobody = HttpClient()
    for method, path, body in [*ABOUT_ONE, ("GET", "/me", None), ("GET", "/usage", None)]:
        for query in ("", f"?token={token}", f"?access_token={token}"):
            error = await nobody.refused(method, path.format(**ids) + query, body)
            assert (error["status"], error["code"]) == (401, "unauthenticated"), path
    for header in ("Bearer wrong", "Bearer ", f"Bearer x{token}", f"Basic {token}", token):
        error = await nobody.refused("GET", "/me", headers={"Authorization": header})
        assert error["status"] == 401, header


async def test_it_ends_with_the_token_and_the_account(gateway: GatewayHost, owner: User) -> None:
    client = HttpClient(owner)
    assert (await client.ok("GET", "/me"))["id"] == owner.pk
    await sync_to_async(lambda: User.objects.filter(pk=owner.pk).update(is_active=False))()
    assert (await client.refused("GET", "/me"))["status"] == 401


async def logged_in(user: User, **options: Any) -> AsyncClient:
    client = AsyncClient(**options)
    await client.aforce_login(user)
    return client


async def test_it_takes_a_cookie_for_reads_and_asks_for_csrf_otherwise(
    gateway: GatewayHost, owner: User
) -> None:
    client = await logged_in(owner, enforce_csrf_checks=True)
    assert (await client.get("/api/v1/sessions")).status_code == 200
    body = {"clientMessageId": "new"}
    options: Any = {"content_type": "application/json"}
    refused = await client.post("/api/v1/sessions", body, **options)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    await client.get("/accounts/login/?next=/")
    secret = "a" * 32
    client.cookies["csrftoken"] = secret
    made = await client.post("/api/v1/sessions", body, headers={"X-CSRFToken": secret}, **options)
    assert made.status_code == 201


async def test_it_exports_by_cookie_what_the_owner_sees_to_the_owner_alone(
    gateway: GatewayHost, owner: User
) -> None:
    session = await sync_to_async(SessionFactory)(owner=owner, title="Pillows", archived=True)
    await sync_to_async(MessageFactory)(session=session, text="a canary")
    await sync_to_async(MessageFactory)(session=session, kind="note", text="for staff")
    name = f"pillows-{str(session.pk)[-8:]}"
    stranger, operator = await sync_to_async(UserFactory)(), await sync_to_async(_operator)()
    for form, suffix in (("markdown", "md"), ("jsonl", "jsonl")):
        address = f"/api/v1/sessions/{session.pk}/export?form={form}"
        answer: Any = await (await logged_in(owner)).get(address)
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}.{suffix}"'
        text = b"".join([piece async for piece in answer])
        assert b"a canary" in text
        assert b"for staff" not in text
        for other in (stranger, operator):
            assert (await (await logged_in(other)).get(address)).status_code == 404


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded"],
)
@pytest.mark.parametrize("body", ["broken", "a=1&" * 2000, "x" * 3_000_000])
async def test_it_reads_no_form_for_a_csrf_token_into_a_fault(
    gateway: GatewayHost, owner: User, content_type: str, body: str
) -> None:
    client = await logged_in(owner, enforce_csrf_checks=True, raise_request_exception=False)
    answer = await client.post("/api/v1/sessions", data=body, content_type=content_type)
    assert answer.status_code in {400, 403, 413}, answer.content
    assert answer.json()["error"]["code"] in {"invalid_frame", "forbidden", "too_large"}


async def test_it_ignores_the_cookie_beside_a_token(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    client = await logged_in(owner, enforce_csrf_checks=True)
    token = await sync_to_async(credentials.create_token)(user=stranger)
    headers = {"Authorization": f"Bearer {token}"}
    assert (await client.get("/api/v1/me", headers=headers)).json()["id"] == stranger.pk
    made = await client.post(
        "/api/v1/sessions",
        {"clientMessageId": "new"},
        content_type="application/json",
        headers=headers,
    )
    assert (made.status_code, made.json()["session"]["owner"]) == (201, stranger.pk)
    wrong = await client.get("/api/v1/me", headers={"Authorization": "Bearer wrong"})
    assert wrong.status_code == 401


async def test_it_tells_what_was_used_by_the_caller_alone(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    make = sync_to_async(TurnFactory)
    session = await sync_to_async(SessionFactory)(owner=owner)
    for _ in range(2):
        await make(session=session, cost_usd="0.25")
    await make(session=session, client_message_id=None, author=None)
    mine = await HttpClient(owner).ok("GET", "/usage")
    total = {
        "turns": 2, "inputTokens": 400, "cachedInputTokens": 300, "outputTokens": 40,
        "costUsd": 0.5,
    }  # fmt: skip
    assert mine["total"] == total
    (row,) = mine["rows"]
    assert row.pop("day") and row == {"agent": "main", "model": "openai:gpt-test", **total}
    assert (await HttpClient(stranger).ok("GET", "/usage?days=366"))["total"]["turns"] == 0


async def test_it_tells_what_everyone_used_only_by_permission(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    await sync_to_async(TurnFactory)(session__owner=owner)
    may = await sync_to_async(_operator)()
    assert (await HttpClient(may).ok("GET", "/usage?everyone=true"))["total"]["turns"] == 1
    assert (await HttpClient(may).ok("GET", "/usage"))["total"]["turns"] == 0
    staff = await sync_to_async(StaffFactory)()
    permitted = await sync_to_async(UserFactory)(permissions=["gateway_app.view_turn"])
    for user in (owner, stranger, staff, permitted):
        error = await HttpClient(user).refused("GET", "/usage?everyone=true")
        assert (error["status"], error["code"]) == (403, "forbidden")
