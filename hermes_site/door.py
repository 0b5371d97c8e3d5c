"""The door of every websocket: who may come in is decided before the handshake is accepted.

`Authorization: Bearer <api token>` counts alone: Origin is not looked at, the cookie is ignored.
Otherwise Django's session cookie counts, and Origin must be present and trusted. A token in the
query string is nothing. Whoever is not let in gets HTTP 403, on every path.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, cast

from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from django import db
from django.conf import settings
from django.http import parse_cookie
from django.urls import URLPattern, re_path

from gateway_app import credentials
from gateway_app.credentials import Admission
from gateway_app.host import host
from hermes_site import origin
from hermes_site.types import ASGIApp, Receive, Scope, Send

logger: Final = logging.getLogger(__name__)


class Door:
    """Lets authenticated sockets through to `routes`, with `user` and `credential` in the scope."""

    def __init__(self, routes: list[URLPattern]) -> None:
        anything_else = re_path(r"", cast(Any, refuse))  # Any: typed for views, routes ASGI here
        self.routes: ASGIApp = URLRouter([*routes, anything_else])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = origin.client_address(scope)
        # whoever tries too often is not even looked at: so nobody guesses tokens
        admission = await _admit(scope) if host().limits.knock(address) else None
        if admission is None:
            await refuse(scope, receive, send)
            return
        visitor = {
            "user": admission.user, "credential": admission.credential, "address": address,
        }  # fmt: skip
        await self.routes({**scope, **visitor}, receive, send)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers the handshake with HTTP 403."""
    await receive()
    await send({"type": "websocket.close", "code": 4003})


async def _admit(scope: Scope) -> Admission | None:
    try:
        if (token := _bearer_token(scope)) is not None:
            return await _in_thread(credentials.admit_token, token)
        key = _session_key(scope)
        if key is None or not origin.is_trusted(scope):
            return None
        return await _in_thread(credentials.admit_session, key)
    except db.Error:
        logger.exception("A websocket was refused: its credential could not be checked")
        return None


def _bearer_token(scope: Scope) -> str | None:
    """The token of a Bearer header; None if there is no such header, "" if it is malformed."""
    values = [
        value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"
    ]
    bearers = [value for value in values if value.lower().split(" ")[0] == "bearer"]
    if not bearers:
        return None
    return bearers[0][len("bearer") :].strip() if len(values) == 1 else ""


def _session_key(scope: Scope) -> str | None:
    cookies = "; ".join(
        value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"
    )
    return parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME) or None


async def _in_thread(admit: Callable[[str], Admission | None], secret: str) -> Admission | None:
    def call() -> Admission | None:
        try:
            return admit(secret)
        finally:
            db.connections.close_all()

    return await sync_to_async(call, thread_sensitive=False)()
