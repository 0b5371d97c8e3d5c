"""Addresses that take large bodies, and who may send one: known before the body is read."""

from io import BytesIO
from typing import Any

from django import db
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import translation

from gateway_app.api.callers import admit
from gateway_app.api.routes import api
from gateway_app.config import gateway_config


def upload_limit(path: str) -> int | None:
    """How many bytes a body sent to this address may have; None: it takes no uploads."""
    return gateway_config().import_bytes if path == reverse("api:import_session") else None


def refuse_upload(scope: dict[str, Any]) -> HttpResponse | None:
    """The API's answer to whoever may send nothing to it; None: the body may come.

    Looks at the request's head only, and at the database: to be called in a thread.
    """
    request = HttpRequest()
    try:
        request = _request(scope)
        admit(request)
    except Exception as exc:  # noqa: BLE001 as the API answers whatever its handlers raise
        with translation.override(translation.get_language_from_request(request)):
            return api.on_exception(request, exc)
    finally:
        db.connections.close_all()
    return None


def _request(scope: dict[str, Any]) -> HttpRequest:
    """The request without its body, with the session and the user of its cookie."""
    request = ASGIRequest(scope, BytesIO())
    for middleware in (SessionMiddleware, AuthenticationMiddleware):
        middleware(_no_view).process_request(request)
    return request


def _no_view(request: HttpRequest) -> HttpResponse:
    raise NotImplementedError
