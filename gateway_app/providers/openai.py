"""The provider for OpenAI and every server that is compatible with its Chat Completions.

The SDK gives authentication, connections and error types; a body goes through its
`post(content=...)`, since `create()` would encode all history again. Its own retries are off:
they would not see a failure between the headers and the first token, and would wait two minutes
if a server asks for it.
"""

import asyncio
import base64
import hashlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2
import msgspec
from openai import AsyncOpenAI, DefaultAioHttpClient

from gateway_app.config import GatewayConfig
from gateway_app.providers.base import (
    Delta,
    Finish,
    ModelInvalid,
    ModelRequest,
    ProviderError,
    Wire,
)
from gateway_app.providers.openai_answer import Answer
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.providers.openai_errors import (
    FAILURES,
    CutAnswer,
    Failure,
    WebPage,
    Wording,
    silent,
    too_long,
    translate,
)
from gateway_app.providers.openai_stream import UnreadableAnswer
from gateway_app.providers.silence import SilenceWatch

OPENAI_URL: Final = "https://api.openai.com/v1"
DEFAULT_MODEL: Final = "gpt-5.4-mini"
NO_KEY: Final = "none"
"""Sent to servers that were given without a key: the SDK wants one."""

MAX_WAIT_S: Final = 20.0
"""A server that asks for a longer pause is not waited for: the person is told instead."""
TURN_S: Final = 0.001
"""The event loop gets a turn at least this often while buffered data is read."""
WAITED_S: Final = 0.0002
"""A read that took longer has waited for the network: the loop had its turn."""

T = TypeVar("T")


def _split_login(url: str) -> tuple[str, dict[str, str]]:
    """The URL without `user:password@`, which would be logged, and the header that says it."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urlunsplit(bare), {"Authorization": f"Basic {base64.b64encode(login).decode()}"}


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


class OpenAIProvider:
    """One OpenAI-compatible server in one process.

    A subclass may say where the server is (`address`, awaited before each request), which headers
    a request gets (`headers`) and how people read of it (`wording`).
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        name: str = "openai",
        api_key: str | None = None,
        base_url: str | None = None,
        wording: Wording | None = None,
        backoff_s: float = 0.5,
        proxied: bool = True,
    ) -> None:
        """`base_url` None: OpenAI's own. `backoff_s`: the first pause before a second attempt.

        `proxied` False: the proxy that the environment names is not for this server.
        """
        self.name = name
        self.config = config
        self.wording = replace(wording or Wording(), secret=api_key)
        self._key = api_key or NO_KEY
        self._base_url, login = _split_login((base_url or OPENAI_URL).rstrip("/"))
        official = urlsplit(self._base_url).hostname == "api.openai.com"
        self.wire: Wire = OpenAIChatWire(official=official)
        told = f"hermes-provider\0{self._key}\0{base_url or OPENAI_URL}"
        self._fingerprint = hashlib.sha256(told.encode(errors="replace")).hexdigest()[:16]
        self._backoff_s = backoff_s
        self._default_model = DEFAULT_MODEL if base_url is None else None
        # read=None: this module's own limits know a first token from a later one
        timeout = httpx2.Timeout(
            None, connect=config.connect_timeout_s, pool=config.connect_timeout_s
        )
        self._client = AsyncOpenAI(
            api_key=self._key,
            base_url=self._base_url,
            max_retries=0,
            timeout=timeout,
            default_headers=login if api_key is None else None,
            http_client=DefaultAioHttpClient(
                timeout=timeout,
                limits=httpx2.Limits(max_connections=4096, keepalive_expiry=30),
                trust_env=proxied,
            ),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def fingerprint(self) -> str:
        """Changes when the key or the address does; tells nothing about them."""
        return self._fingerprint

    async def address(self) -> str:
        """The base URL for the next request, without a slash at its end."""
        return self._base_url

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

    def start(self) -> None:
        """The client is ready since it was made."""

    async def default_model(self) -> str:
        """OpenAI's default, or the first model that another server lists (asked for once)."""
        if self._default_model is None:
            models = await self._retrying(self._list_models, self.config.connect_timeout_s)
            if not models:
                raise ModelInvalid(
                    f"{self.wording.subject} lists no models. Set HERMES_MODEL to one it has."
                )
            self._default_model = models[0]
        return self._default_model

    async def aclose(self) -> None:
        """Every connection is closed; the provider cannot be used again."""
        await self._client.close()

    async def _begin(self, request: ModelRequest) -> tuple[Answer, list[Delta]]:
        """One attempt, up to its first deltas. Raises one of FAILURES; leaves nothing open."""
        response = await self._client.post(
            f"{await self.address()}/chat/completions",
            cast_to=httpx2.Response,
            content=request.body,
            options={
                "headers": {
                    "X-Stainless-Raw-Response": "stream",
                    "Accept": "text/event-stream",
                    "Accept-Encoding": "identity",
                    **self.headers(request),
                }
            },
        )
        answer = Answer(response)
        try:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/html":
                raise WebPage
            if kind == "application/json":
                return answer, await answer.read_whole() or [Finish("stop")]
            while (deltas := await answer.read()) is not None:
                if deltas:
                    return answer, deltas
            raise CutAnswer
        except BaseException:
            await answer.aclose()
            raise

    async def _list_models(self) -> list[str]:
        response = await self._client.get(f"{await self.address()}/models", cast_to=httpx2.Response)
        try:
            return [model.id for model in msgspec.json.decode(response.content, type=_Models).data]
        except msgspec.DecodeError as exc:
            raise UnreadableAnswer("The list of models cannot be read.") from exc

    async def _retrying(self, attempt: Callable[[], Awaitable[T]], limit_s: float) -> T:
        """What an attempt returns; all attempts together take at most `limit_s`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        for tries in range(self.config.max_retries + 1):
            try:
                async with asyncio.timeout_at(until):
                    return await attempt()
            except TimeoutError:
                failure = Failure(silent(limit_s, self.wording, started=False))
            except FAILURES as exc:
                failure = translate(exc, self.wording)
            pause_s = self._pause_s(failure, tries)
            if pause_s is None or loop.time() + pause_s >= until:
                break
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
        except FAILURES as exc:
            error = translate(exc, self.wording).error
        finally:
            watch.over()
        raise error  # outside `except`, as above
