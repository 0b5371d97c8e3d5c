"""Who calls: by API token, else by the cookie of a web session, as at the websocket's door."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from gateway_app import credentials
from gateway_app.api.errors import ApiError, TooMuch
from gateway_app.host import GatewayHost, host
from sessions_app.sentences import say

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class HttpCaller:
    """Somebody who asks over HTTP, as the websocket's commands see them."""

    host: GatewayHost
    user: User

    @property
    def user_id(self) -> int:
        return self.user.pk

    @property
    def user_name(self) -> str:
        return self.user.get_username()

    def unwatch(self, session_id: UUID) -> None:
        """A request watches nothing."""

    def check_start(self) -> None:
        """Raises TooMuch for a session or a turn above this person's share."""
        if wait_ms := self.host.limits.start(self.user_id):
            raise TooMuch(wait_ms)


class Authentication(AuthBase):
    """Puts an HttpCaller into `request.auth`. Raises ApiError: unauthenticated, forbidden,
    rate_limited."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    async def __call__(self, request: HttpRequest) -> HttpCaller:
        user = await sync_to_async(admit)(request)
        caller = HttpCaller(host(), user)
        if wait_ms := caller.host.limits.command(caller.user_id, sends=False):
            raise TooMuch(wait_ms)
        return caller


def admit(request: HttpRequest) -> User:
    """The active user who calls. A cookie needs the CSRF token for whatever is no read."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        user = credentials.authenticate_token(token.strip())
    else:
        user = request.user if isinstance(request.user, User) else None
        if user and request.method not in _SAFE and check_csrf(request) is not None:
            raise ApiError("forbidden", say("Send the CSRF token in the header X-CSRFToken."))
    if user is None:
        raise ApiError("unauthenticated", say("Log in, or send an API token."))
    return user


def caller_of(request: HttpRequest) -> HttpCaller:
    """Who was admitted."""
    caller: HttpCaller = request.auth  # type: ignore[attr-defined]  # ninja's own attribute
    return caller
