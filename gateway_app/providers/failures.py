"""What went wrong at a model's server, as one ProviderError with one sentence.

The sentence says what happened, what is safe and what to do. It holds no key and no address.
"""

import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
import httpx2

from gateway_app.providers.base import (
    ContextFull,
    ModelAuth,
    ModelInvalid,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ProviderError,
)

RETRIED_STATUSES: Final = frozenset({408, 409, 429})
"""And everything from 500 on, as the SDKs have it."""
MAX_RETRY_AFTER_MS: Final = 86_400_000
"""A server that asks for more than a day has asked for nothing."""

_CONTEXT: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|context (length|window|size)"
    r"|exceeds? context limit|maximum (context|number of tokens)|prompt is too long"
    r"|request_too_large|too many tokens",
    re.IGNORECASE,
)
_REFUSED: Final = re.compile(
    r"content_filter|content_policy|content filtering|moderation", re.IGNORECASE
)
_QUOTA: Final = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)
_SECRET: Final = re.compile(
    r"\b(sk|key|pk|gsk|xai)[-_][\w*-]{6,}|\b(Bearer|Basic)\s+\S+|\b\w+://\S+"
)
_STATUS_OF_KIND: Final = tuple(
    (re.compile(pattern), status)
    for pattern, status in (
        ("rate_limit", 429),
        ("authentication|invalid_api_key", 401),
        ("permission", 403),
        ("not_found", 404),
        ("billing|insufficient_quota", 402),
        ("request_too_large", 413),
        ("overloaded", 529),
        ("timeout_error", 504),
        (f"(?i:{_CONTEXT.pattern})|invalid_request", 400),
    )
)
"""What error types and codes amount to where an answer holds an error instead of a status."""
_SAFE: Final = "Your message is kept."


class CutAnswer(Exception):
    """The stream ended before the answer did."""


class WebPage(Exception):
    """Something that is no answer came where one was expected, such as HTML."""


class UnreadableAnswer(ValueError):
    """The server sent what is no answer of its wire format."""


class ErrorInAnswer(Exception):
    """The server sent an error object; `error` is it, as decoded JSON."""

    def __init__(self, error: object) -> None:
        super().__init__("The server sent an error instead of an answer.")
        self.error = error


TRANSPORT_FAILURES: Final[tuple[type[Exception], ...]] = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,
    UnreadableAnswer,
    ErrorInAnswer,
    CutAnswer,
    WebPage,
)
"""What an attempt may raise beside a ProviderError and the errors of its SDK."""


@dataclass(frozen=True)
class Wording:
    """How a provider is spoken of, and what to look at when it fails."""

    subject: str = "The model provider"
    mend_key: str = "Check OPENAI_API_KEY."
    mend_address: str = "Check OPENAI_BASE_URL and the network."
    mend_path: str = ""
    """For an address where something else answers, if there is more to say than `mend_address`."""
    secrets: tuple[str, ...] = ()
    """Never shown, not even if the server repeats them."""


@dataclass(frozen=True)
class Failure:
    """A failed attempt: what to raise, and whether another attempt may help."""

    error: ProviderError
    again: bool = False

    @property
    def wait_s(self) -> float | None:
        """How long the server asks to wait; None: it did not ask."""
        wait_ms = self.error.retry_after_ms
        return None if wait_ms is None else wait_ms / 1000


def failed_status(
    status: int, error: object, headers: Mapping[str, str], wording: Wording
) -> Failure:
    """The failure for a response's status; `error` is the error object of its body."""
    if 300 <= status < 400 or (status in {403, 404, 405} and not _is_json(headers)):
        return _web_page(wording)
    return _status(status, error, headers, wording)


def failed_attempt(exc: Exception, wording: Wording) -> Failure:
    """The failure that an exception of the transport or of a parser stands for."""
    if isinstance(exc, ErrorInAnswer):
        return _status(_status_in(exc.error), exc.error, {}, wording)
    if isinstance(exc, WebPage | httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return _web_page(wording)
    if isinstance(exc, UnreadableAnswer):
        text = f"{wording.subject} sent an answer that cannot be read. {_SAFE} Try again."
        return Failure(ModelInvalid(text))
    if isinstance(exc, CutAnswer):
        text = f"{wording.subject} broke off in the middle of its answer. {_SAFE} Try again."
        return Failure(ModelUnavailable(text), again=True)
    return _connection(exc, wording)


def _is_json(headers: Mapping[str, str]) -> bool:
    return "json" in headers.get("content-type", "")


def _web_page(wording: Wording) -> Failure:
    text = f"There is no model at the address of {wording.subject.lower()}."
    return Failure(ModelInvalid(f"{text} {_SAFE} {wording.mend_path or wording.mend_address}"))


def silent(seconds: float, wording: Wording, *, started: bool) -> ModelTimeout:
    """The error for a server that says nothing for `seconds`."""
    if started:
        return ModelTimeout(
            f"{wording.subject} stopped in the middle of its answer and was silent for"
            f" {seconds:g} s. {_SAFE} Try again."
        )
    return ModelTimeout(
        f"{wording.subject} did not answer for {seconds:g} s. {_SAFE} Try again later."
    )


def too_long(seconds: float, wording: Wording) -> ModelTimeout:
    return ModelTimeout(
        f"{wording.subject} had not ended its answer after {seconds:g} s. {_SAFE} Ask for less."
    )


def _connection(exc: Exception, wording: Wording) -> Failure:
    """The failure of a server that cannot be talked to, told by the exceptions below `exc`."""
    causes: list[BaseException] = []
    cause: BaseException | None = exc
    while cause is not None and len(causes) < 10:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    safe = not among(ssl.SSLError, ssl.CertificateError, aiohttp.ClientSSLError)
    if not safe:
        what = "cannot be reached over a safe connection (TLS)"
    elif among(socket.gaierror, aiohttp.ClientConnectorDNSError):
        what = "cannot be found under its name"
    elif among(ConnectionRefusedError):
        what = "does not accept connections"
    elif among(aiohttp.ConnectionTimeoutError, httpx2.TimeoutException):
        what = "could not be connected to in time"
    else:
        what = "closed the connection before its answer was complete"
    text = f"{wording.subject} {what}. {_SAFE} {wording.mend_address}"
    return Failure(ModelUnavailable(text), again=safe)


def _status_in(error: object) -> int:
    """The HTTP status that an error object inside an answer amounts to."""
    if isinstance(error, Mapping):
        for field in ("code", "status", "status_code"):
            value = error.get(field)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
        kind = f"{error.get('type')} {error.get('code')}"
        for pattern, status in _STATUS_OF_KIND:
            if pattern.search(kind):
                return status
    return 502


def _status(status: int, body: object, headers: Mapping[str, str], wording: Wording) -> Failure:
    """The failure for an HTTP status and what its body says."""
    told = _told(body)
    who = wording.subject
    if status in {400, 413, 422} and (status == 413 or _CONTEXT.search(told)):
        text = "The conversation no longer fits into the model's window."
        return Failure(ContextFull(f"{text} {_SAFE} Start a new chat or use another model."))
    if status in {400, 403, 422} and _REFUSED.search(told):
        text = f"{who} refused this by its content filter. {_SAFE} Say it another way."
        return Failure(ModelRefused(text))
    if status == 402 or (status in {400, 403, 429} and _QUOTA.search(told)):
        text = f"The account at the model provider has no credit left. {_SAFE} Ask its owner."
        return Failure(ModelRateLimited(text))
    if status == 401:
        return Failure(ModelAuth(f"{who} did not accept the key. {_SAFE} {wording.mend_key}"))
    if status == 403:
        text = f"{who} does not allow this key to use the model. {_SAFE} {wording.mend_key}"
        return Failure(ModelAuth(text))
    if status == 404 and isinstance(body, Mapping) and body.get("detail") == "Not Found":
        return _web_page(wording)  # the answer of a web framework, such as vLLM's
    if status == 404:
        text = f"{who} does not know this model. {_SAFE} Choose another model."
        return Failure(ModelInvalid(text))
    if status == 429:
        wait_ms = retry_after_ms(headers)
        when = "Try again later." if not wait_ms else f"Try again in {-(-wait_ms // 1000)} s."
        text = f"{who} gets too many requests at the moment. {_SAFE} {when}"
        return Failure(ModelRateLimited(text, retry_after_ms=wait_ms), again=True)
    if status >= 500 or status in RETRIED_STATUSES:
        text = f"{who} has a problem of its own (status {status}). {_SAFE} Try again later."
        wait_ms = retry_after_ms(headers)
        return Failure(ModelUnavailable(text, retry_after_ms=wait_ms), again=True)
    reason = _shown(body, wording)
    return Failure(ModelInvalid(f"{who} did not accept the request{reason}. {_SAFE}"))


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """What `Retry-After` (seconds or a date) or `Retry-After-Ms` asks for; None: nothing sane."""
    for name, factor in (("retry-after-ms", 1), ("retry-after", 1000)):
        told = headers.get(name, "")
        try:
            wait = float(told) * factor
        except ValueError:
            wait = _until_ms(told)
        if 0 <= wait < MAX_RETRY_AFTER_MS:
            return int(wait)
    return None


def _until_ms(date: str) -> float:
    """The milliseconds until an HTTP date, negative for one that is over and for what is none."""
    try:
        at = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return -1
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (at - datetime.now(UTC)).total_seconds() * 1000


def _told(body: object) -> str:
    """Everything an error body says, to search in; not for people."""
    if isinstance(body, Mapping):
        return " ".join(str(body.get(field)) for field in ("code", "type", "message"))
    return str(body)[:2000] if body is not None else ""


def _shown(body: object, wording: Wording) -> str:
    """` (what the server says)`, cut short and without anything that may be a secret."""
    message = body.get("message") if isinstance(body, Mapping) else None
    if not isinstance(message, str) or not message.strip() or "Traceback" in message:
        return ""
    for secret in wording.secrets:
        message = message.replace(secret, "...")
    message = " ".join(_SECRET.sub("...", message).split()).rstrip(".")
    return f" ({message[:200]})"
