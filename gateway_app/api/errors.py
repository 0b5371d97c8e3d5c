"""What HTTP answers where something is refused: `{"error": {"code", "message"}}`, never a page.

Codes are those of the websocket; a status says the same to whoever knows no codes.
"""

import logging
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from gateway_app import misfits
from gateway_app.api.answers import json_response
from gateway_app.errors import GatewayError
from gateway_app.protocol import FrameError
from sessions_app.errors import Refusal, SessionEnded, SessionError
from sessions_app.sentences import Sentence, say

logger: Final = logging.getLogger(__name__)

STATUSES: Final = {
    "invalid_frame": 422,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "busy": 409,
    "queue_full": 429,
    "idempotency_mismatch": 409,
    "session_ended": 409,
    "too_large": 413,
    "rate_limited": 429,
    "draining": 503,
    "already_decided": 409,
    "expired": 410,
    "unsupported": 400,
    "internal": 500,
}
"""The status of each code, unless an error says another one."""

_OF_DJANGO: Final = {
    400: ("invalid_frame", say("This request cannot be read.")),
    403: ("forbidden", say("This is not allowed.")),
    404: ("not_found", say("There is nothing at this address.")),
    405: ("unsupported", say("This address does not take this method.")),
    413: ("too_large", say("This request is too large.")),
}
_INTERNAL: Final = ("internal", say("Something broke in this server. Send it again."))
RETRY_AFTER_S: Final = 2


class ApiError(Refusal):
    """A refusal of this door itself."""

    wait_ms: int | None = None
    """When it may be asked again."""

    def __init__(self, code: str, sentence: Sentence, status: int | None = None) -> None:
        super().__init__(sentence)
        self.code, self.status = code, status or STATUSES[code]


class TooMuch(ApiError):
    """Somebody asks more than their share."""

    def __init__(self, wait_ms: int) -> None:
        super().__init__(
            "rate_limited", say("Too much at once. Wait a little, then send it again.")
        )
        self.wait_ms = wait_ms


def error_response(
    code: str,
    sentence: Sentence,
    *,
    status: int | None = None,
    more: Mapping[str, str] | None = None,
) -> HttpResponse:
    """An error's answer in the active language, which is English unless the request asks for
    another; where sending it again may help, it says when."""
    status, message = status or STATUSES.get(code, 400), sentence.translated()
    answer = json_response({"error": {"code": code, "message": message, **(more or {})}}, status)
    if status in {429, 503}:
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    return answer


def response_of_status(status: int) -> HttpResponse:
    """The answer in the place of a page by which Django refuses a request."""
    code, sentence = _OF_DJANGO.get(status, _INTERNAL if status >= 500 else _OF_DJANGO[400])
    return error_response(code, sentence, status=status)


def _api_error(request: HttpRequest, exc: ApiError) -> HttpResponse:
    answer = error_response(exc.code, exc.sentence, status=exc.status)
    if exc.wait_ms is not None:
        answer.headers["Retry-After"] = str(ceil(exc.wait_ms / 1000))
    return answer


def _session_error(request: HttpRequest, exc: SessionError) -> HttpResponse:
    more = {}
    if isinstance(exc, SessionEnded) and exc.successor_id:
        more["successorId"] = str(exc.successor_id)
    code = "invalid_frame" if exc.code == "invalid" else exc.code
    return error_response(code, exc.sentence, more=more)


def _gateway_error(request: HttpRequest, exc: GatewayError) -> HttpResponse:
    return error_response(exc.code, exc.sentence)


def _frame_error(request: HttpRequest, exc: FrameError) -> HttpResponse:
    return error_response(exc.code, exc.sentence)


def _validation_error(request: HttpRequest, exc: ValidationError) -> HttpResponse:
    """The first thing that is wrong, by the name of its field."""
    return error_response("invalid_frame", misfits.of_query(exc.errors[0]))


def _http_error(request: HttpRequest, exc: HttpError) -> HttpResponse:
    return response_of_status(exc.status_code)


def _not_found(request: HttpRequest, exc: Http404) -> HttpResponse:
    return response_of_status(404)


def _too_large(request: HttpRequest, exc: RequestDataTooBig) -> HttpResponse:
    return response_of_status(413)


def _unreadable(request: HttpRequest, exc: Exception) -> HttpResponse:
    return response_of_status(400)


def _database_error(request: HttpRequest, exc: DatabaseError) -> HttpResponse:
    logger.error("A request lost the database", exc_info=exc)
    text = say("The database did not answer. Nothing was lost; send it again.")
    return error_response("internal", text, status=503)


def _fault(request: HttpRequest, exc: Exception) -> HttpResponse:
    logger.error("A request broke off", exc_info=exc)
    return response_of_status(500)


_ANSWERS: Final[dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]]] = {
    ApiError: _api_error,
    SessionError: _session_error,
    GatewayError: _gateway_error,
    FrameError: _frame_error,
    ValidationError: _validation_error,
    HttpError: _http_error,
    Http404: _not_found,
    RequestDataTooBig: _too_large,
    UnreadablePostError: _unreadable,
    SuspiciousOperation: _unreadable,
    MultiPartParserError: _unreadable,
    DatabaseError: _database_error,
    Exception: _fault,
}


def register_handlers(api: NinjaAPI) -> None:
    """Every exception of a handler becomes an answer."""
    for kind, answer in _ANSWERS.items():
        api.add_exception_handler(kind, answer)
