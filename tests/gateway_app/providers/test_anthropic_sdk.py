"""Guards the one route of the SDK that sends a body as it is: what `anthropic` must go on doing."""

import json
from collections.abc import AsyncIterator

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic, DefaultAioHttpClient

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.providers.asking import BLOCKS, a_request, deltas
from tests.gateway_app.providers.conftest import KEY, MakeAnthropic

BODY = '{"model":"m",  "messages":[],"note":"spaces, 1e22, -0.0, Grüße"}'.encode()


@pytest.fixture
async def client(server: FakeModelServer) -> AsyncIterator[AsyncAnthropic]:
    client = AsyncAnthropic(
        api_key=KEY,
        base_url=server.url.removesuffix("/v1"),
        max_retries=0,
        open_telemetry=False,
        http_client=DefaultAioHttpClient(),
    )
    yield client
    await client.close()


async def post(client: AsyncAnthropic) -> httpx2.Response:
    return await client.post(
        "/v1/messages",
        cast_to=httpx2.Response,
        content=BODY,
        options={"headers": {"X-Stainless-Raw-Response": "stream"}},
    )


async def test_it_sends_the_bytes_it_was_given(
    client: AsyncAnthropic, server: FakeModelServer
) -> None:
    response = await post(client)
    await response.aclose()
    sent = server.requests[0]
    assert sent.body == BODY
    assert KEY in (sent.headers.get("x-api-key") or sent.headers["authorization"])
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["anthropic-version"]


async def test_it_gives_the_response_before_its_body_was_read(
    client: AsyncAnthropic, server: FakeModelServer
) -> None:
    gate = Gate()
    server.script(Script(end_gate=gate))
    response = await post(client)
    assert not response.is_stream_consumed
    gate.release()
    body = b"".join([piece async for piece in response.aiter_bytes()])
    assert body.endswith(b'data: {"type": "message_stop"}\n\n')
    await response.aclose()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.APIStatusError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.APIStatusError),
    ],
)
async def test_it_raises_its_own_errors_with_body_and_headers(
    client: AsyncAnthropic,
    server: FakeModelServer,
    status: int,
    kind: type[anthropic.APIStatusError],
) -> None:
    server.script(Script(status=status, error={"type": "why", "message": "No"}))
    with pytest.raises(kind) as caught:
        await post(client)
    assert caught.value.status_code == status
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"] == {"type": "why", "message": "No"}
    assert caught.value.response.headers["content-type"].startswith("application/json")


async def test_the_provider_sends_the_joined_body(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    provider = make_anthropic()
    answer = '{"role":"assistant","content":[{"type":"text","text":"-0.0 and 1e22 \\u0041"}]}'
    await deltas(provider, BLOCKS, answer)
    sent = server.requests[0]
    assert sent.path == "/v1/messages"
    assert sent.body == a_request(provider, BLOCKS, answer).body
    assert answer.encode() in sent.body
    assert sent.headers["accept-encoding"] == "identity"
    assert json.loads(sent.body)["stream"] is True
