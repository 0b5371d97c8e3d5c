"""Everything that goes wrong becomes one error with one clear sentence, over real HTTP."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gateway_app.providers.base import (
    ContextFull,
    ModelAuth,
    ModelInvalid,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
    ProviderError,
)
from gateway_app.providers.failures import retry_after_ms
from tests.fake_model_server import FakeModelServer, Json, Script
from tests.gateway_app.providers.asking import failure
from tests.gateway_app.providers.conftest import MakeProvider

KEPT = "Your message is kept."


@pytest.mark.parametrize(
    ("status", "error", "kind", "sentence"),
    [
        (
            401,
            {"message": "Incorrect API key provided"},
            ModelAuth,
            f"The model provider did not accept the key. {KEPT} Check OPENAI_API_KEY.",
        ),
        (
            403,
            {"message": "No access"},
            ModelAuth,
            "The model provider does not allow this key to use the model."
            f" {KEPT} Check OPENAI_API_KEY.",
        ),
        (
            404,
            {"message": "The model `x` does not exist", "code": "model_not_found"},
            ModelInvalid,
            f"The model provider does not know this model. {KEPT} Choose another model.",
        ),
        (
            404,
            "404 page not found",
            ModelInvalid,
            "There is no model at the address of the model provider."
            f" {KEPT} Check OPENAI_BASE_URL and the network.",
        ),
        (
            400,
            {"message": "Unsupported parameter: 'temperature'."},
            ModelInvalid,
            "The model provider did not accept the request"
            f" (Unsupported parameter: 'temperature'). {KEPT}",
        ),
        (
            400,
            {"message": "Too long", "code": "context_length_exceeded"},
            ContextFull,
            "The conversation no longer fits into the model's window."
            f" {KEPT} Start a new chat or use another model.",
        ),
        (
            400,
            {"message": "This model's maximum context length is 4096 tokens", "code": None},
            ContextFull,
            "The conversation no longer fits into the model's window."
            f" {KEPT} Start a new chat or use another model.",
        ),
        (
            413,
            "<html>too large</html>",
            ContextFull,
            "The conversation no longer fits into the model's window."
            f" {KEPT} Start a new chat or use another model.",
        ),
        (
            400,
            {"message": "Filtered", "code": "content_filter"},
            ModelRefused,
            f"The model provider refused this by its content filter. {KEPT} Say it another way.",
        ),
        (
            429,
            {"message": "Slow down"},
            ModelRateLimited,
            f"The model provider gets too many requests at the moment. {KEPT} Try again later.",
        ),
        (
            429,
            {"message": "You exceeded your quota", "code": "insufficient_quota"},
            ModelRateLimited,
            f"The account at the model provider has no credit left. {KEPT} Ask its owner.",
        ),
        (
            500,
            {"message": "Oops"},
            ModelUnavailable,
            f"The model provider has a problem of its own (status 500). {KEPT} Try again later.",
        ),
        (
            503,
            "<html>Bad gateway</html>",
            ModelUnavailable,
            f"The model provider has a problem of its own (status 503). {KEPT} Try again later.",
        ),
    ],
)
async def test_it_says_what_a_status_means(
    make_provider: MakeProvider,
    server: FakeModelServer,
    status: int,
    error: Json | str,
    kind: type[ProviderError],
    sentence: str,
) -> None:
    server.default = Script(status=status, error=error)
    failed = await failure(make_provider())
    assert type(failed) is kind
    assert str(failed) == sentence


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ('{"code": 429, "message": "Slow down"}', ModelRateLimited),
        ('{"type": "rate_limit_error"}', ModelRateLimited),
        ('{"code": 401}', ModelAuth),
        ('{"code": "context_length_exceeded", "message": "Too long"}', ContextFull),
        ('{"type": "invalid_request_error", "message": "No"}', ModelInvalid),
        ('{"message": "Something"}', ModelUnavailable),
        ('"A text"', ModelUnavailable),
        ("true", ModelUnavailable),
    ],
)
async def test_it_reads_errors_within_the_stream(
    make_provider: MakeProvider, server: FakeModelServer, error: str, kind: type[ProviderError]
) -> None:
    text = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
    for before in (b"", text):
        server.script(Script(raw=[before, f'data: {{"error": {error}}}\n\n'.encode()]))
        failed = await failure(make_provider(max_retries=0))
        assert type(failed) is kind
        assert KEPT in str(failed)


@pytest.mark.parametrize(
    "garbled",
    [
        b'data: {"choices": [{"delta"\n\n',
        b"data: hello\n\n",
        b'data: {"choices": "none"}\n\n',
        b"data: [1, 2]\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
)
async def test_it_says_that_a_garbled_chunk_cannot_be_read(
    make_provider: MakeProvider, server: FakeModelServer, garbled: bytes
) -> None:
    server.script(Script(raw=[garbled]))
    failed = await failure(make_provider())
    assert type(failed) is ModelInvalid
    assert str(failed) == (
        "The model provider sent an answer that cannot be read. Your message is kept. Try again."
    )
    assert len(server.requests) == 1


@pytest.mark.parametrize("cut_at_byte", [1, 200, 500, 700, 900])
async def test_it_says_that_an_answer_broke_off(
    make_provider: MakeProvider, server: FakeModelServer, cut_at_byte: int
) -> None:
    server.default = Script(cut_at_byte=cut_at_byte)
    failed = await failure(make_provider())
    assert type(failed) is ModelUnavailable
    assert KEPT in str(failed)


async def test_it_says_that_an_answer_ended_early(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(finish_reason=None, done=False, send_usage=False))
    failed = await failure(make_provider())
    assert type(failed) is ModelUnavailable
    assert str(failed) == (
        "The model provider broke off in the middle of its answer. Your message is kept. Try again."
    )


async def test_it_says_that_a_web_page_answered(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(raw=[b"<html>Welcome</html>"], content_type="text/html"))
    failed = await failure(make_provider())
    assert type(failed) is ModelInvalid
    assert "There is no model at the address" in str(failed)


async def test_it_says_that_another_program_answered(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(status=404, error='{"detail":"Not Found"}'))
    failed = await failure(make_provider())
    assert type(failed) is ModelInvalid
    assert "There is no model at the address" in str(failed)


async def test_it_says_that_nobody_listens(make_provider: MakeProvider) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        failed = await failure(make_provider(base_url=f"http://127.0.0.1:{port}/v1"))
    assert type(failed) is ModelUnavailable
    assert str(failed) == (
        "The model provider does not accept connections."
        " Your message is kept. Check OPENAI_BASE_URL and the network."
    )


async def test_it_says_that_a_name_is_unknown(make_provider: MakeProvider) -> None:
    failed = await failure(make_provider(base_url="http://nobody.invalid/v1", max_retries=0))
    assert type(failed) is ModelUnavailable
    assert "cannot be found under its name" in str(failed)


async def test_it_says_that_tls_failed(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    failed = await failure(make_provider(base_url=server.url.replace("http:", "https:")))
    assert type(failed) is ModelUnavailable
    assert "cannot be reached over a safe connection (TLS)" in str(failed)


async def test_it_says_that_a_server_speaks_no_http(make_provider: MakeProvider) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        failed = await failure(make_provider(base_url=f"http://127.0.0.1:{port}/v1", max_retries=0))
    assert type(failed) is ModelUnavailable


async def test_it_says_that_a_connection_could_not_be_made_in_time(
    make_provider: MakeProvider,
) -> None:
    """A listener whose queue is full answers no SYN, so connecting takes for ever."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        provider = make_provider(
            base_url=f"http://127.0.0.1:{address[1]}/v1", connect_timeout_s=0.1, max_retries=0
        )
        failed = await failure(provider)
        for one in waiting:
            one.close()
    assert type(failed) is ModelUnavailable
    assert "could not be connected to in time" in str(failed)


async def test_it_says_when_to_try_again(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(status=429, headers={"Retry-After": "33"}))
    failed = await failure(make_provider())
    assert str(failed).endswith("Try again in 33 s.")
    assert failed.retry_after_ms == 33_000


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after-ms": "20", "retry-after": "9"}, 20),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_it_reads_how_long_to_wait(headers: dict[str, str], wait_ms: int | None) -> None:
    assert retry_after_ms(headers) == wait_ms


def test_it_reads_until_when_to_wait() -> None:
    at = datetime.now(UTC) + timedelta(seconds=30)
    wait_ms = retry_after_ms({"retry-after": format_datetime(at, usegmt=True)})
    assert wait_ms is not None
    assert 28_000 < wait_ms <= 30_000
