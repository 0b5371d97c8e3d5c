"""Guards the one route of the SDK that sends a body as it is: what `openai` must go on doing."""

import json
from collections.abc import AsyncIterator

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, DefaultAioHttpClient

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.providers.asking import HELLO, a_request, deltas
from tests.gateway_app.providers.conftest import KEY, MakeProvider

BODY = '{"model":"m",  "messages":[],"note":"spaces, 1e22, -0.0, Grüße"}'.encode()


@pytest.fixture
async def client(server: FakeModelServer) -> AsyncIterator[AsyncOpenAI]:
    client = AsyncOpenAI(
        api_key=KEY, base_url=server.url, max_retries=0, http_client=DefaultAioHttpClient()
    )
    yield client
    await client.close()


async def post(client: AsyncOpenAI) -> httpx2.Response:
    return await client.post(
        "/chat/completions",
        cast_to=httpx2.Response,
        content=BODY,
        options={"headers": {"X-Stainless-Raw-Response": "stream"}},
    )


async def test_it_sends_the_bytes_it_was_given(
    client: AsyncOpenAI, server: FakeModelServer
) -> None:
    response = await post(client)
    await response.aclose()
    assert server.requests[0].body == BODY
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].headers["content-type"] == "application/json"


async def test_it_gives_the_response_before_its_body_was_read(
    client: AsyncOpenAI, server: FakeModelServer
) -> None:
    gate = Gate()
    server.script(Script(end_gate=gate))
    response = await post(client)
    assert not response.is_stream_consumed
    gate.release()
    body = b"".join([piece async for piece in response.aiter_bytes()])
    assert body.endswith(b"data: [DONE]\n\n")
    await response.aclose()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
async def test_it_raises_its_own_errors_with_body_and_headers(
    client: AsyncOpenAI, server: FakeModelServer, status: int, kind: type[openai.APIStatusError]
) -> None:
    server.script(Script(status=status, error={"message": "No", "code": "why"}))
    with pytest.raises(kind) as caught:
        await post(client)
    assert caught.value.status_code == status
    assert caught.value.body == {"message": "No", "code": "why"}
    assert caught.value.response.headers["content-type"].startswith("application/json")


async def test_it_repeats_the_same_bytes_when_it_tries_again(
    client: AsyncOpenAI, server: FakeModelServer
) -> None:
    server.script(Script(status=503, headers={"Retry-After": "0.01"}))
    response = await post(client.with_options(max_retries=1))
    await response.aclose()
    assert [record.body for record in server.requests] == [BODY, BODY]


async def test_the_provider_sends_the_joined_body(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    provider = make_provider()
    answer = '{"role":"assistant","content":"-0.0 and 1e22 \\u0041"}'
    await deltas(provider, HELLO, answer)
    sent = server.requests[0]
    assert sent.body == a_request(provider, HELLO, answer).body
    assert answer.encode() in sent.body
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["accept-encoding"] == "identity"
    assert json.loads(sent.body)["stream"] is True
