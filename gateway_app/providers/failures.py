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
from sessions_app.sentences import Sentence, say

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
_SAFE: Final = say("Your message is kept.")
_PROVIDER: Final = say("The model provider")
_NO_MODEL: Final = say("There is no model at the address of the model provider.")
_KEY: Final = say("Check %(variable)s.", variable="OPENAI_API_KEY")
_ADDRESS: Final = say("Check %(variable)s and the network.", variable="OPENAI_BASE_URL")
_AGAIN: Final = say("Try again.")
_LATER: Final = say("Try again later.")


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

    who: Sentence = _PROVIDER
    no_model: Sentence = _NO_MODEL
    mend_key: Sentence = _KEY
    mend_address: Sentence = _ADDRESS
    mend_path: Sentence | None = None
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
        text = say("%(who)s sent an answer that cannot be read.", who=wording.who)
        return Failure(ModelInvalid(text + _SAFE + _AGAIN))
    if isinstance(exc, CutAnswer):
        text = say("%(who)s broke off in the middle of its answer.", who=wording.who)
        return Failure(ModelUnavailable(text + _SAFE + _AGAIN), again=True)
    return _connection(exc, wording)


def _is_json(headers: Mapping[str, str]) -> bool:
    return "json" in headers.get("content-type", "")


def _web_page(wording: Wording) -> Failure:
    mend = wording.mend_path or wording.mend_address
    return Failure(ModelInvalid(wording.no_model + _SAFE + mend))


def silent(seconds: float, wording: Wording, *, started: bool) -> ModelTimeout:
    """The error for a server that says nothing for `seconds`."""
    if started:
        text = say(
            "%(who)s stopped in the middle of its answer and was silent for %(seconds)s s.",
            who=wording.who,
            seconds=seconds,
        )
        return ModelTimeout(text + _SAFE + _AGAIN)
    text = say("%(who)s did not answer for %(seconds)s s.", who=wording.who, seconds=seconds)
    return ModelTimeout(text + _SAFE + _LATER)


def too_long(seconds: float, wording: Wording) -> ModelTimeout:
    text = say(
        "%(who)s had not ended its answer after %(seconds)s s.", who=wording.who, seconds=seconds
    )
    return ModelTimeout(text + _SAFE + say("Ask for less."))


def _connection(exc: Exception, wording: Wording) -> Failure:
    """The failure of a server that cannot be talked to, told by the exceptions below `exc`."""
    causes: list[BaseException] = []
    cause: BaseException | None = exc
    while cause is not None and len(causes) < 10:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    who, safe = wording.who, not among(ssl.SSLError, ssl.CertificateError, aiohttp.ClientSSLError)
    if not safe:
        text = say("%(who)s cannot be reached over a safe connection (TLS).", who=who)
    elif among(socket.gaierror, aiohttp.ClientConnectorDNSError):
        text = say("%(who)s cannot be found under its name.", who=who)
    elif among(ConnectionRefusedError):
        text = say("%(who)s does not accept connections.", who=who)
    elif among(aiohttp.ConnectionTimeoutError, httpx2.TimeoutException):
        text = say("%(who)s could not be connected to in time.", who=who)
    else:
        text = say("%(who)s closed the connection before its answer was complete.", who=who)
    return Failure(ModelUnavailable(text + _SAFE + wording.mend_address), again=safe)


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
    who = wording.who
    if status in {400, 413, 422} and (status == 413 or _CONTEXT.search(told)):
        text = say("The conversation no longer fits into the model's window.")
        mend = say("Start a new chat or use another model.")
        return Failure(ContextFull(text + _SAFE + mend))
    if status in {400, 403, 422} and _REFUSED.search(told):
        text = say("%(who)s refused this by its content filter.", who=who)
        return Failure(ModelRefused(text + _SAFE + say("Say it another way.")))
    if status == 402 or (status in {400, 403, 429} and _QUOTA.search(told)):
        text = say("The account at the model provider has no credit left.")
        return Failure(ModelRateLimited(text + _SAFE + say("Ask its owner.")))
    if status == 401:
        text = say("%(who)s did not accept the key.", who=who)
        return Failure(ModelAuth(text + _SAFE + wording.mend_key))
    if status == 403:
        text = say("%(who)s does not allow this key to use the model.", who=who)
        return Failure(ModelAuth(text + _SAFE + wording.mend_key))
    if status == 404 and isinstance(body, Mapping) and body.get("detail") == "Not Found":
        return _web_page(wording)  # the answer of a web framework, such as vLLM's
    if status == 404:
        text = say("%(who)s does not know this model.", who=who)
        return Failure(ModelInvalid(text + _SAFE + say("Choose another model.")))
    if status == 429:
        wait_ms = retry_after_ms(headers)
        text = say("%(who)s gets too many requests at the moment.", who=who)
        when = _LATER
        if wait_ms:
            when = say("Try again in %(seconds)s s.", seconds=-(-wait_ms // 1000))
        return Failure(ModelRateLimited(text + _SAFE + when, retry_after_ms=wait_ms), again=True)
    if status >= 500 or status in RETRIED_STATUSES:
        text = say("%(who)s has a problem of its own (status %(status)s).", who=who, status=status)
        wait_ms = retry_after_ms(headers)
        error = ModelUnavailable(text + _SAFE + _LATER, retry_after_ms=wait_ms)
        return Failure(error, again=True)
    text = say("%(who)s did not accept the request.", who=who)
    if reason := _shown(body, wording):
        text = say("%(who)s did not accept the request (%(reason)s).", who=who, reason=reason)
    return Failure(ModelInvalid(text + _SAFE))


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
    """What the server says, cut short and without anything that may be a secret."""
    message = body.get("message") if isinstance(body, Mapping) else None
    if not isinstance(message, str) or not message.strip() or "Traceback" in message:
        return ""
    for secret in wording.secrets:
        message = message.replace(secret, "...")
    message = " ".join(_SECRET.sub("...", message).split()).rstrip(".")
    return message[:200]
