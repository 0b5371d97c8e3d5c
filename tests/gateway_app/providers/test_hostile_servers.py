"""Whatever a server sends, either provider ends in one clear sentence, and soon."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from gateway_app.providers import event_stream, http
from gateway_app.providers.base import ModelInvalid, ModelUnavailable, ProviderError
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.providers.asking import a_request, deltas, failure
from tests.gateway_app.providers.conftest import KEY, MakeAny

NO_MODEL = "There is no model at the address of the model provider."
UNREADABLE = "The model provider sent an answer that cannot be read. Your message is kept."

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[str]:
    """The base URL of a server that `serve` plays, once it has read a request's head and body."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_it_follows_no_redirect(
    make_each: MakeAny, server: FakeModelServer, status: int
) -> None:
    """The key would go to whoever the server names."""
    with FakeModelServer() as elsewhere:
        target = f"{elsewhere.url}/chat/completions"
        server.script(Script(status=status, error="moved", headers={"Location": target}))
        failed = await failure(make_each(max_retries=0))
        assert elsewhere.requests == []
    assert type(failed) is ModelInvalid
    assert NO_MODEL in str(failed)


@pytest.mark.parametrize(
    "kind", ["text/html", "text/html; charset=utf-8", "image/png", "application/xml"]
)
async def test_it_says_that_something_else_answered(
    make_each: MakeAny, server: FakeModelServer, kind: str
) -> None:
    server.script(Script(raw=[b"\x89PNG\r\n\x1a\n<html>"], content_type=kind))
    failed = await failure(make_each(max_retries=0))
    assert type(failed) is ModelInvalid
    assert NO_MODEL in str(failed)


@pytest.mark.parametrize("status", [400, 403, 404, 405, 500, 502, 503])
async def test_it_shows_no_web_page(
    make_each: MakeAny, server: FakeModelServer, status: int
) -> None:
    server.script(Script(status=status, error="<html><b>Bad gateway</b> at 10.0.0.7</html>"))
    failed = await failure(make_each(max_retries=0))
    assert "<" not in str(failed)
    assert "10.0.0.7" not in str(failed)
    assert "Your message is kept." in str(failed)


@pytest.mark.parametrize(
    "garbled",
    [
        b"data: \xff\xfe\x00\x01\n\n",
        b'data: {"choices": 5, "type": 5}\n\n',
        b"data: null\n\n",
        b"data: " + b"[" * 50_000 + b"\n\n",
        b'data: {"type": "content_block_delta", "choices": [{"delta": 1}], "delta": 1}\n\n',
    ],
)
async def test_it_says_that_garbled_data_cannot_be_read(
    make_each: MakeAny, server: FakeModelServer, garbled: bytes
) -> None:
    server.script(Script(raw=[garbled]))
    failed = await failure(make_each())
    assert type(failed) is ModelInvalid
    assert str(failed).startswith(UNREADABLE)
    assert len(server.requests) == 1


@pytest.mark.parametrize("noise", [b"\x00\x01\x02" * 1000, b"Hello, I am no stream.\n\n", b""])
async def test_it_says_that_an_answer_without_an_event_broke_off(
    make_each: MakeAny, server: FakeModelServer, noise: bytes
) -> None:
    server.script(Script(raw=[noise]))
    failed = await failure(make_each(max_retries=0))
    assert type(failed) is ModelUnavailable
    assert "broke off" in str(failed)


async def test_it_gives_up_on_a_line_without_end(
    make_each: MakeAny, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MAX_LINE_BYTES", 100_000)
    piece = b"data: " + b"x" * 50_000
    server.script(Script(raw=[piece] * 20, end_gate=Gate()))
    failed = await failure(make_each())
    assert str(failed).startswith(UNREADABLE)


async def test_it_reads_no_endless_error(make_each: MakeAny) -> None:
    """An error whose body never ends: its first bytes are enough."""
    sent = 0

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 400 Bad\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"e" * 65_536)
            sent += 65_536
            await writer.drain()

    async with raw_server(serve) as url:
        failed = await failure(make_each(base_url=url, max_retries=0))
    assert type(failed) is ModelInvalid
    assert sent < 100 * http.MAX_ERROR_BYTES


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Type: text/ev"]
)
async def test_it_does_not_wait_for_slow_headers(make_each: MakeAny, head: bytes) -> None:
    gate = Gate()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await writer.drain()
        await gate.passed()

    async with raw_server(serve) as url:
        failed = await failure(make_each(base_url=url, first_token_timeout_s=0.2))
        gate.release()
    assert failed.code == "model_timeout"
    assert "did not answer for 0.2 s" in str(failed)


async def test_keep_alives_are_no_token(make_each: MakeAny, server: FakeModelServer) -> None:
    alive = b': alive\n\nevent: ping\ndata: {"type": "ping"}\n\n'
    server.script(Script(raw=[alive] * 3, end_gate=Gate()))
    failed = await failure(make_each(first_token_timeout_s=0.2))
    assert failed.code == "model_timeout"


async def test_it_says_that_an_answer_broke_off_wherever_it_is_cut(
    make_each: MakeAny, server: FakeModelServer
) -> None:
    provider = make_each(max_retries=0)
    script = Script(reasoning=["Hm"], tokens=["Yes", "!"])
    await deltas(provider)
    server.script(Script(reasoning=["Hm"], tokens=["Yes", "!"], cut_at_byte=1_000_000))
    await deltas(provider)
    for cut_at_byte in range(0, 1_000, 37):
        server.script(Script(**{**vars(script), "cut_at_byte": cut_at_byte}))
        try:
            answer = await deltas(provider)
        except ProviderError as exc:
            assert type(exc) is ModelUnavailable
            assert "Your message is kept." in str(exc)
        else:  # only after the answer was whole
            assert any(delta.__class__.__name__ == "Finish" for delta in answer)


async def test_it_hides_a_key_that_the_server_repeats(
    make_each: MakeAny, server: FakeModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Servers that echo the request's headers in their error, as debugging proxies do."""
    caplog.set_level(logging.DEBUG)
    provider = make_each(max_retries=0)
    echo = f"headers: Authorization: Bearer {KEY}; x-api-key: {KEY}; key={KEY[:-1]}"
    for status in (400, 401, 403, 404, 413, 422, 429, 500, 529):
        for error in ({"type": "invalid", "message": echo}, echo):
            server.script(Script(status=status, error=error))
            failed = await failure(provider)
            assert KEY not in str(failed)
            assert failed.__cause__ is None
            assert failed.__context__ is None
    raw = f'data: {{"type": "error", "error": {{"message": "{echo}"}}}}\n\n'.encode()
    server.script(Script(raw=[raw]))
    assert KEY not in str(await failure(provider))
    assert KEY not in caplog.text
    assert KEY not in repr(provider)
    assert KEY not in repr(a_request(provider))
