"""The content security policy of every page."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from gateway_app.content_policy import PAGE_POLICY


class ContentSecurityPolicyMiddleware:
    """Sets the strict policy on every response that does not carry one of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
        return response
