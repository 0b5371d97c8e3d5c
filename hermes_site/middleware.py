"""What every response gets: a security policy, for the API no page as an error; and no NUL.

And what no request gets past: a host that is not served.
"""

import logging
from collections.abc import Callable
from typing import Final

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext

from gateway_app.api.errors import error_response, response_of_status
from gateway_app.content_policy import PAGE_POLICY
from sessions_app.sentences import say

logger: Final = logging.getLogger(__name__)

_UNKNOWN_HOST: Final = say(
    "This server does not answer under the name in the Host header. Whoever runs it can add that"
    " name to ALLOWED_HOSTS, or set HERMES_PUBLIC_URL."
)


class ContentSecurityPolicyMiddleware:
    """Sets the strict policy on every response that does not carry one of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
        return response


class NulMiddleware:
    """Refuses NUL in the query of a page: no filter means it, and PostgreSQL breaks off at it.

    The API checks its own values.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "%00" in request.META.get("QUERY_STRING", "") and not request.path.startswith("/api/"):
            with translation.override(translation.get_language_from_request(request)):
                told = gettext("This address holds a character that none may hold.")
            return HttpResponseBadRequest(told)
        return self.get_response(request)


class ApiErrorsMiddleware:
    """Puts JSON in the place of the pages by which Django refuses a request to the API.

    It stands before every other one, which may refuse as well.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        refused = response.status_code >= 400 and request.path.startswith("/api/")
        if refused and response.headers.get("Content-Type") != "application/json":
            language = translation.get_language_from_request(request)
            with translation.override(language):
                answer = response_of_status(response.status_code)
            answer.headers["Content-Language"] = language
            patch_vary_headers(answer, ["Accept-Language", "Cookie"])
            if "Allow" in response.headers:
                answer.headers["Allow"] = response.headers["Allow"]
            return answer
        return response


class HostMiddleware:
    """Tells whoever used a name that is not served what to set: one line in the log, no traceback.

    It stands before Django's own check of the host, and behind what chooses the page's language.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            request.get_host()
        except DisallowedHost:
            host = request.META.get("HTTP_HOST", "")[:100]
            logger.info("A request named a host that is not served", extra={"host": repr(host)})
            response = self._refusal(request, host)
            response.__dict__["_has_been_logged"] = True  # Django would log it again
            return response
        return self.get_response(request)

    def _refusal(self, request: HttpRequest, host: str) -> HttpResponse:
        if request.path.startswith("/api/"):
            return error_response("invalid_frame", _UNKNOWN_HOST, status=400)
        return render(request, "accounts/unknown_host.html", {"host": host}, status=400)
