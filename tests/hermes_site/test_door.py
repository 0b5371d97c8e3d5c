"""Who a websocket handshake lets in: every credential against every Origin, on every path."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.db import connections
from django.urls import re_path
from django.utils import timezone

from gateway_app import credentials
from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost, set_host
from gateway_app.models import ApiToken
from hermes_site.door import Door
from hermes_site.origin import client_address
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "127.0.0.1:8000"
OWN = f"http://{HOST}"


async def room(scope: Any, receive: Any, send: Any) -> None:
    """Accepts, and says who came in and how."""
    await receive()
    await send({"type": "websocket.accept"})
    how = scope["credential"]["kind"]
    await send({"type": "websocket.send", "text": f"{scope['user'].username} by {how}"})
    await receive()


door = Door([re_path(r"^ws/v1/$", room)])


async def knock(
    *,
    path: str = "/ws/v1/",
    host: str | None = HOST,
    origin: str | None = OWN,
    cookie: str | None = None,
    bearer: str | None = None,
    more: tuple[tuple[bytes, bytes], ...] = (),
    client: str = "127.0.0.1",
) -> str | None:
    """What the room said; None if the door stayed shut."""
    headers = list(more)
    if host is not None:
        headers.append((b"host", host.encode()))
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    if cookie is not None:
        headers.append((b"cookie", f"a=b; {settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    if bearer is not None:
        headers.append((b"authorization", f"Bearer {bearer}".encode()))
    socket = WebsocketCommunicator(door, path, headers=headers)
    socket.scope["client"] = [client, 40_000]
    opened, _ = await socket.connect()
    said = await socket.receive_from() if opened else None
    await socket.disconnect()
    return said


def log_in(user: User) -> str:
    """The key of a new web session of `user`."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)


async def change(call: Callable[[], Any]) -> Any:
    """Changes the database in a thread whose connection ends with the call."""

    def run() -> Any:
        try:
            return call()
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def cookie(ann: User) -> str:
    return log_in(ann)


@pytest.fixture
def token(ann: User) -> str:
    return credentials.create_token(user=ann, name="test")


async def test_it_opens_to_a_cookie_from_its_own_origin(cookie: str) -> None:
    assert await knock(cookie=cookie) == "ann by cookie"


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:8001",
        "https://127.0.0.1:8000",
        "http://localhost:8000",
        "http://127.0.0.1.evil.example:8000",
        "http://127.0.0.1:8000.evil.example",
        "http://127.0.0.1:8000@evil.example",
        "http://evil.example/http://127.0.0.1:8000",
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8000 http://evil.example",
        "file://",
        "chrome-extension://127.0.0.1:8000",
        "http://127.0.0.1:8000\xa0",
    ],
)
async def test_it_stays_shut_to_a_cookie_from_elsewhere(cookie: str, origin: str | None) -> None:
    assert await knock(cookie=cookie, origin=origin) is None


@pytest.mark.parametrize("path", ["/ws/v1/", "/ws/v2/", "/", "/ws/v1", "/admin/", "/ws/v1/%00"])
@pytest.mark.parametrize("origin", [None, "null", "http://evil.example"])
async def test_it_stays_shut_to_a_foreign_origin_on_every_path(
    cookie: str, path: str, origin: str | None
) -> None:
    assert await knock(cookie=cookie, path=path, origin=origin) is None


@pytest.mark.parametrize("path", ["/ws/v2/", "/", "/ws/v1", "/ws/v1/more/"])
async def test_it_refuses_an_unknown_path_to_everybody(cookie: str, token: str, path: str) -> None:
    assert await knock(cookie=cookie, path=path) is None
    assert await knock(bearer=token, path=path) is None


@pytest.mark.parametrize(
    "host", [None, "evil.example", "evil.example:8000", "127.0.0.1:x", "", "@"]
)
async def test_it_stays_shut_to_a_host_that_is_not_allowed(cookie: str, host: str | None) -> None:
    for origin in (OWN, f"http://{host}"):
        assert await knock(cookie=cookie, host=host, origin=origin) is None


async def test_it_opens_to_another_allowed_host_and_to_ipv6(cookie: str) -> None:
    assert await knock(cookie=cookie, host="localhost", origin="http://localhost")
    assert await knock(cookie=cookie, host="localhost:80", origin="http://localhost")
    assert await knock(cookie=cookie, host="[::1]:8000", origin="http://[::1]:8000")
    assert await knock(cookie=cookie, host="LOCALHOST:8000", origin="http://localhost:8000")


async def test_it_opens_to_origins_listed_as_trusted(cookie: str, settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://chat.example", "https://*.wide.example:8443"]
    assert await knock(cookie=cookie, origin="https://chat.example")
    assert await knock(cookie=cookie, origin="https://a.wide.example:8443")
    for other in (
        "http://chat.example",
        "https://chat.example:444",
        "https://sub.chat.example",
        "https://chat.example.evil",
        "https://evilwide.example:8443",
        "https://a.wide.example",
    ):
        assert await knock(cookie=cookie, origin=other) is None, other


async def test_it_sees_https_behind_a_proxy_that_is_configured(cookie: str, settings: Any) -> None:
    forwarded = ((b"x-forwarded-proto", b"https"),)
    secure = f"https://{HOST}"
    assert await knock(cookie=cookie, origin=secure, more=forwarded) is None
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert await knock(cookie=cookie, origin=secure, more=forwarded)
    assert await knock(cookie=cookie, origin=OWN, more=forwarded) is None


async def test_it_stays_shut_without_a_credential_or_with_a_false_one() -> None:
    assert await knock() is None
    assert await knock(cookie="") is None
    assert await knock(cookie="0123456789abcdefghijklmnopqrstuv") is None
    assert await knock(cookie="' OR 1=1 --") is None
    assert await knock(bearer="hms_wrong") is None
    assert await knock(bearer="") is None
    assert await knock(bearer="\xff\xfe") is None


async def test_it_never_looks_at_origin_or_host_when_a_token_is_shown(token: str) -> None:
    for origin in (None, "null", "http://evil.example", OWN):
        assert await knock(bearer=token, origin=origin) == "ann by token"
    assert await knock(bearer=token, host="evil.example") == "ann by token"


async def test_it_ignores_the_cookie_when_a_token_is_shown(cookie: str, token: str) -> None:
    assert await knock(bearer="hms_wrong", cookie=cookie) is None
    bobs = await change(lambda: credentials.create_token(user=UserFactory(username="bob")))
    assert await knock(bearer=bobs, cookie=cookie) == "bob by token"


async def test_it_ignores_a_token_in_the_query_string(token: str) -> None:
    assert await knock(path=f"/ws/v1/?token={token}&access_token={token}") is None


async def test_it_refuses_repeated_origins_hosts_and_tokens(cookie: str, token: str) -> None:
    assert await knock(cookie=cookie, more=((b"origin", b"http://evil.example"),)) is None
    assert await knock(cookie=cookie, more=((b"host", b"evil.example"),)) is None
    assert await knock(bearer=token, more=((b"authorization", b"Bearer x"),)) is None


async def test_it_stays_shut_to_an_inactive_user(ann: User, cookie: str, token: str) -> None:
    await change(lambda: User.objects.filter(pk=ann.pk).update(is_active=False))
    assert await knock(cookie=cookie) is None
    assert await knock(bearer=token) is None


async def test_it_stays_shut_to_a_session_from_before_a_password_change(
    ann: User, cookie: str
) -> None:
    ann.set_password("another")
    await change(ann.save)
    assert await knock(cookie=cookie) is None


async def test_it_stays_shut_to_an_expired_session_and_to_dead_tokens(
    ann: User, cookie: str, token: str
) -> None:
    engine = import_module(settings.SESSION_ENGINE)
    sessions = engine.SessionStore.get_model_class().objects
    await change(lambda: sessions.update(expire_date=timezone.now()))
    assert await knock(cookie=cookie) is None
    await change(lambda: ApiToken.objects.update(expires_at=timezone.now()))
    assert await knock(bearer=token) is None
    await change(lambda: ApiToken.objects.update(expires_at=None, revoked_at=timezone.now()))
    assert await knock(bearer=token) is None


async def test_it_looks_at_nobody_from_an_address_that_tries_on_and_on(ann: User) -> None:
    """Case K11: whoever guesses tokens soon finds no door, and others still do."""
    limited = GatewayHost(replace(GatewayConfig(), connects_burst=3, connects_per_s=0.001))
    set_host(limited)
    try:
        token = await change(lambda: credentials.create_token(user=ann))
        for guess in range(3):
            assert await knock(bearer=f"hms_{guess}", client="192.0.2.7") is None
        assert await knock(bearer=token, client="192.0.2.7") is None
        assert await knock(bearer=token, client="192.0.2.8") == "ann by token"
        for _ in range(9):
            assert await knock(bearer=token) == "ann by token"
    finally:
        set_host(None)


@pytest.mark.parametrize(("proxied", "address"), [(True, "203.0.113.9"), (False, "192.0.2.7")])
def test_it_believes_the_proxy_it_has(settings: Any, proxied: bool, address: str) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if proxied else None
    forged = (b"x-forwarded-for", b"127.0.0.1, 203.0.113.9")
    assert client_address({"client": ["192.0.2.7", 1], "headers": [forged]}) == address
