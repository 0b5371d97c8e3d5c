"""`/metrics`: for Prometheus on this machine, or with the token of an operator."""

import ipaddress
from typing import Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from gateway_app import credentials
from gateway_app.api.errors import error_response
from gateway_app.host import host
from gateway_app.scrape import count_open_turns, scrape
from sessions_app.sentences import say

_PROXIED: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
                   "X-Real-IP", "Via")  # fmt: skip


@never_cache
@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, or why they are not shown."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        if (refused := await sync_to_async(_refused)(token.strip())) is not None:
            return refused
    elif not comes_from_this_machine(request):
        return _unknown()
    gateway = host()
    try:
        open_turns = await gateway.lanes.read(count_open_turns)
    except DatabaseError:
        open_turns = None
    return HttpResponse(scrape(gateway.moment, open_turns), content_type=CONTENT_TYPE_LATEST)


def comes_from_this_machine(request: HttpRequest) -> bool:
    """Whether a program here asked directly.

    A proxy on this machine comes from loopback too. So nothing may look like one: no header that
    proxies set, a loopback address as the host that was asked, and no TLS in front of this site.
    """
    if settings.SECURE_PROXY_SSL_HEADER or any(name in request.headers for name in _PROXIED):
        return False
    asked = split_domain_port(request.get_host())[0].strip("[]")
    return _is_loopback(request.META.get("REMOTE_ADDR") or "") and (
        asked == "localhost" or _is_loopback(asked)
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _refused(token: str) -> HttpResponse | None:
    """Why this token does not open the metrics; None: it does."""
    user = credentials.authenticate_token(token)
    if user is None:
        return _unknown()
    if not (user.is_staff and user.has_perm("gateway_app.view_turn")):
        return error_response("forbidden", say("Metrics are for operators who may view turns."))
    return None


def _unknown() -> HttpResponse:
    text = say("Ask from this machine, or send the API token of an operator.")
    answer = error_response("unauthenticated", text)
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
