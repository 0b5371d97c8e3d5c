"""One model's server over HTTP: attempts, time limits, batches. Each wire format has a subclass.

A vendor's SDK gives authentication, connections and error types; a body goes through its
`post(content=...)`, since its own `create()` would encode all history again. The SDKs' retries are
off: they would not see a failure between the headers and the first token, and would wait two
minutes if a server asks for it.
"""

import asyncio
import base64
import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, TypedDict, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2
import msgspec

from gateway_app import metrics
from gateway_app.config import GatewayConfig
from gateway_app.providers.answer import Answer, read_bounded
from gateway_app.providers.base import Delta, ModelInvalid, ModelRequest, ProviderError, Wire
from gateway_app.providers.event_stream import EventStreamParser
from gateway_app.providers.failures import Failure, UnreadableAnswer, Wording, silent, too_long
from gateway_app.providers.silence import SilenceWatch
from sessions_app.sentences import say

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

NO_KEY: Final = "none"
"""Sent to servers that were given without a key: the SDKs want one."""
RAW: Final = {"X-Stainless-Raw-Response": "stream"}
"""Makes the SDKs give the response before its body was read."""

MAX_WAIT_S: Final = 20.0
"""A server that asks for a longer pause is not waited for: the person is told instead."""
MAX_ERROR_BYTES: Final = 64 * 1024
"""No error is longer; the rest of a body that a failing server sends is not read."""
TURN_S: Final = 0.001
"""The event loop gets a turn at least this often while buffered data is read."""
WAITED_S: Final = 0.0002
"""A read that took longer has waited for the network: the loop had its turn."""

T = TypeVar("T")


def split_login(url: str) -> tuple[str, dict[str, str]]:
    """The URL without `user:password@`, which would be logged, and the header that says it."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urlunsplit(bare), {"Authorization": f"Basic {base64.b64encode(login).decode()}"}


class _Model(msgspec.Struct):
    """One model of a list. Servers that tell its window have a name of their own for it."""

    id: str
    context_length: object = None
    context_window: object = None
    max_model_len: object = None
    max_input_tokens: object = None

    @property
    def window_tokens(self) -> int | None:
        told = (
            self.context_length, self.context_window, self.max_model_len, self.max_input_tokens,
        )  # fmt: skip
        return next((size for size in told if isinstance(size, int) and size > 0), None)


class _Models(msgspec.Struct):
    data: list[_Model]


class _ErrorBody(httpx2.AsyncByteStream):
    """The first bytes of an error's body: the SDKs read all of it, and it may have no end."""

    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._whole:
            yield piece[: MAX_ERROR_BYTES - read]
            read += len(piece)
            if read >= MAX_ERROR_BYTES:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()


async def _bound_error(response: httpx2.Response) -> None:
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _ErrorBody(response.stream)


class ClientOptions(TypedDict):
    """What an SDK's HTTP client is made with."""

    timeout: httpx2.Timeout
    limits: httpx2.Limits
    trust_env: bool
    follow_redirects: bool
    event_hooks: dict[str, list[Callable[[httpx2.Response], Awaitable[None]]]]


def client_options(config: GatewayConfig, *, proxied: bool) -> ClientOptions:
    """`proxied` False: the proxy that the environment names is not for this server.

    No redirect is followed: the key would go to whoever the server names.
    """
    return {
        # read=None: this module's own limits know a first token from a later one
        "timeout": httpx2.Timeout(
            None, connect=config.connect_timeout_s, pool=config.connect_timeout_s
        ),
        "limits": httpx2.Limits(max_connections=4096, keepalive_expiry=30),
        "trust_env": proxied,
        "follow_redirects": False,
        "event_hooks": {"response": [_bound_error]},
    }


class HTTPProvider(ABC):
    """One server in one process.

    A subclass may say where the server is (`address`, awaited before each request), which headers
    a request gets (`headers`) and how people read of it (`wording`).
    """

    wire: Wire
    failures: ClassVar[tuple[type[Exception], ...]]
    """What an attempt may raise beside a ProviderError, and `translate` understands."""
    answers_at: ClassVar[str]
    models_at: ClassVar[str]
    """Where the server answers, and where it lists its models, behind its address."""
    client: "AsyncOpenAI | AsyncAnthropic"

    def __init__(
        self,
        config: GatewayConfig,
        *,
        name: str,
        api_key: str | None,
        base_url: str,
        wording: Wording,
        backoff_s: float,
    ) -> None:
        """`backoff_s`: the first pause before a second attempt."""
        self.name = name
        self.config = config
        self.key = api_key or NO_KEY
        self.base_url, self.login = split_login(base_url.rstrip("/"))
        password = unquote(urlsplit(base_url).password or "")
        secrets = (api_key, config.openai_api_key, config.anthropic_api_key, password)
        self.wording = replace(wording, secrets=tuple(filter(None, secrets)))
        told = f"hermes-provider\0{self.key}\0{base_url}"
        self._fingerprint = hashlib.sha256(told.encode(errors="replace")).hexdigest()[:16]
        self._backoff_s = backoff_s
        self._windows: dict[str, int] = {}
        self.known_default: str | None = None
        """The model to use when nobody named one; None: the first that the server lists."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    def _parser(self) -> EventStreamParser:
        """A parser for one answer."""

    @abstractmethod
    def _translate(self, exc: Exception) -> Failure:
        """The failure that one of `failures` stands for."""

    async def aclose(self) -> None:
        """Every connection is closed; the provider cannot be used again."""
        await self.client.close()

    @property
    def fingerprint(self) -> str:
        """Changes when the key or the address does; tells nothing about them."""
        return self._fingerprint

    async def address(self) -> str:
        """The base URL for the next request, without a slash at its end."""
        return self.base_url

    def headers(self, request: ModelRequest) -> Mapping[str, str]:
        """The headers that this request gets beside the usual ones."""
        return {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Delta]]:
        """The answer, as `base.Provider.stream` says."""
        end = asyncio.get_running_loop().time() + self.config.total_timeout_s
        attempt = partial(self._begin, request)
        answer, deltas = await self._retrying(attempt, self.config.first_token_timeout_s)
        watch = SilenceWatch(idle_s=self.config.idle_timeout_s, end=end)
        try:
            yield deltas[:1]
            await asyncio.sleep(0)
            turn = perf_counter()
            rest: list[Delta] | None = deltas[1:]
            while rest is not None:
                if rest:
                    yield rest
                before = perf_counter()
                if before - turn >= TURN_S:
                    await asyncio.sleep(0)
                    turn = before = perf_counter()
                rest = await self._next(answer, watch)
                after = perf_counter()
                if after - before > WAITED_S:
                    turn = after
        finally:
            watch.close()
            await answer.aclose()

    def start(self) -> None:  # noqa: B027 nothing to do for most, no duty of a subclass
        """The client is ready since it was made."""

    async def default_model(self) -> str:
        """The vendor's default, or the first model that another server lists (asked for once)."""
        if self.known_default is None:
            models = await self.models()
            if not models:
                raise ModelInvalid(
                    say(
                        "%(who)s lists no models. Set HERMES_MODEL to one it has.",
                        who=self.wording.who,
                    )
                )
            self.known_default = models[0]
        return self.known_default

    async def models(self) -> list[str]:
        """The models that the server lists now. Raises a ProviderError."""
        return await self._retrying(self._list_models, self.config.connect_timeout_s)

    def window_tokens(self, model: str) -> int | None:
        """What the server's list told of the model's window; None: nothing, or not asked yet."""
        return self._windows.get(model)

    async def _post(self, request: ModelRequest) -> httpx2.Response:
        """The response to a request, its body unread. Raises one of `failures`."""
        headers = {
            **RAW,
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            **self.headers(request),
        }
        return await self.client.post(
            await self.address() + self.answers_at,
            cast_to=httpx2.Response,
            content=request.body,
            options={"headers": headers},
        )

    async def _get_models(self) -> httpx2.Response:
        """The response that lists the models, its body unread. Raises one of `failures`."""
        return await self.client.get(
            await self.address() + self.models_at,
            cast_to=httpx2.Response,
            options={"headers": RAW},
        )

    async def _begin(self, request: ModelRequest) -> tuple[Answer, list[Delta]]:
        """One attempt, up to its first deltas. Raises one of `failures`; leaves nothing open."""
        answer = Answer(await self._post(request), self._parser())
        try:
            return answer, await answer.begin()
        except BaseException:
            await answer.aclose()
            raise

    async def _list_models(self) -> list[str]:
        response = await self._get_models()
        try:
            body = await read_bounded(response.aiter_bytes())
            listed = msgspec.json.decode(body, type=_Models).data
        except msgspec.DecodeError as exc:
            raise UnreadableAnswer("The list of models cannot be read.") from exc
        finally:
            await response.aclose()
        self._windows |= {one.id: one.window_tokens for one in listed if one.window_tokens}
        return [one.id for one in listed]

    async def _retrying(self, attempt: Callable[[], Awaitable[T]], limit_s: float) -> T:
        """What an attempt returns; all attempts together take at most `limit_s`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        for tries in range(self.config.max_retries + 1):
            try:
                async with asyncio.timeout_at(until):
                    begun = await attempt()
                metrics.provider_calls.labels(self.name, "answered").inc()
                return begun
            except TimeoutError:
                failure = Failure(silent(limit_s, self.wording, started=False))
            except self.failures as exc:
                failure = self._translate(exc)
            metrics.provider_calls.labels(self.name, failure.error.code).inc()
            pause_s = self._pause_s(failure, tries)
            if pause_s is None or loop.time() + pause_s >= until:
                break
            metrics.provider_retries.labels(self.name).inc()
            await asyncio.sleep(pause_s)
        # outside `except`: the SDK's error holds the request, and may repeat the key
        raise failure.error

    def _pause_s(self, failure: Failure, tries: int) -> float | None:
        """How long to wait before the next attempt; None: there is none."""
        if not failure.again or tries >= self.config.max_retries:
            return None
        if failure.wait_s is not None:
            return failure.wait_s if failure.wait_s <= MAX_WAIT_S else None
        return self._backoff_s * 2.0**tries * random.uniform(0.75, 1)

    async def _next(self, answer: Answer, watch: SilenceWatch) -> list[Delta] | None:
        """The next deltas, or None. Raises a ProviderError."""
        error: ProviderError
        watch.begin()
        try:
            return await answer.read()
        except asyncio.CancelledError:
            if not watch.ends_it():
                raise
            if watch.too_long:
                error = too_long(self.config.total_timeout_s, self.wording)
            else:
                error = silent(self.config.idle_timeout_s, self.wording, started=True)
        except self.failures as exc:
            error = self._translate(exc).error
        finally:
            watch.over()
        raise error  # outside `except`, as above
