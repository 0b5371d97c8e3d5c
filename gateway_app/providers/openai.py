"""The provider for OpenAI and every server that is compatible with its Chat Completions.

The SDK gives authentication, connections and error types; a body goes through its
`post(content=...)`, since `create()` would encode all history again. Its own retries are off:
they would not see a failure between the headers and the first token, and would wait two minutes
if a server asks for it.
"""

import asyncio
import hashlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import httpx2
import msgspec
import openai
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
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.providers.openai_errors import (
    CutAnswer,
    Failure,
    WebPage,
    Wording,
    silent,
    too_long,
    translate,
)
from gateway_app.providers.openai_stream import (
    MAX_LINE_BYTES,
    AnswerParser,
    ErrorInAnswer,
    UnreadableAnswer,
)

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
LAST_BYTES_S: Final = 0.05
"""How long after [DONE] the connection is given to end the response, to be used again."""

FAILURES: Final = (
    openai.OpenAIError,
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

T = TypeVar("T")


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


class _Answer:
    """One response whose body is being read. Must be closed, also after its end."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()
        self._parser = AnswerParser()
        self._over = False

    async def read(self) -> list[Delta] | None:
        """The deltas of the next piece, or None after the end. Raises one of FAILURES."""
        if self._over:
            return None
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            return self._end()
        except httpx2.TransportError:
            if not self._parser.finished:
                raise
            return self._end()
        deltas = self._parser.feed(piece)
        if self._parser.done:
            await self._finish_response()
            deltas += self._end()
        return deltas

    async def read_whole(self) -> list[Delta]:
        """The deltas of an answer that was not streamed."""
        body = bytearray()
        async for piece in self._pieces:
            body += piece
            if len(body) > MAX_LINE_BYTES:
                raise UnreadableAnswer("The answer is too long.")
        self._over = True
        return self._parser.whole(bytes(body))

    def _end(self) -> list[Delta]:
        """The last deltas. Raises CutAnswer if the answer is not complete."""
        self._over = True
        deltas = self._parser.end()
        if not self._parser.finished:
            if not self._parser.done:
                raise CutAnswer
            deltas.append(Finish("stop"))
        return deltas

    async def _finish_response(self) -> None:
        """Reads what stands after [DONE], so that the connection can be used again."""
        try:
            async with asyncio.timeout(LAST_BYTES_S):
                async for _ in self._pieces:
                    pass
        except (TimeoutError, httpx2.TransportError):
            return

    async def aclose(self) -> None:
        await self._response.aclose()


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
    ) -> None:
        """`base_url` None: OpenAI's own. `backoff_s`: the first pause before a second attempt."""
        self.name = name
        self.config = config
        self.wording = wording or Wording()
        self._key, self._base_url = api_key or NO_KEY, (base_url or OPENAI_URL).rstrip("/")
        self._own_server = base_url is None or urlsplit(base_url).hostname == "api.openai.com"
        self.wire: Wire = OpenAIChatWire(official=self._own_server)
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
            http_client=DefaultAioHttpClient(
                timeout=timeout,
                limits=httpx2.Limits(max_connections=4096, keepalive_expiry=30),
            ),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def fingerprint(self) -> str:
        """Changes when the key or the address does; tells nothing about them."""
        told = f"{self._key}\0{self._base_url}".encode()
        return hashlib.sha256(b"hermes-provider\0" + told).hexdigest()[:16]

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
                rest = await self._next(answer, end)
                after = perf_counter()
                if after - before > WAITED_S:
                    turn = after
        finally:
            await answer.aclose()

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

    async def _begin(self, request: ModelRequest) -> tuple[_Answer, list[Delta]]:
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
        answer = _Answer(response)
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

    async def _next(self, answer: _Answer, end: float) -> list[Delta] | None:
        """The next deltas, or None. Raises a ProviderError; `end` is the loop's time."""
        idle_s = self.config.idle_timeout_s
        until = asyncio.get_running_loop().time() + idle_s
        error: ProviderError
        try:
            async with asyncio.timeout_at(min(until, end)):
                return await answer.read()
        except TimeoutError:
            if until <= end:
                error = silent(idle_s, self.wording, started=True)
            else:
                error = too_long(self.config.total_timeout_s, self.wording)
        except FAILURES as exc:
            error = translate(exc, self.wording).error
        raise error  # outside `except`, as above
