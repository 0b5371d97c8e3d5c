"""The provider for Anthropic over real HTTP: answers, caching, errors."""

import asyncio
import json

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.providers.anthropic import DEFAULT_MODEL, AnthropicProvider
from gateway_app.providers.base import (
    ContextFull,
    Finish,
    ModelAuth,
    ModelInvalid,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
    ProviderError,
    ReasoningDelta,
    Replay,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from gateway_app.providers.registry import Providers
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.providers.asking import BLOCKS, a_request, batches, deltas, failure, text_of
from tests.gateway_app.providers.conftest import KEY, MakeAnthropic

YES = '{"role":"assistant","content":[{"type":"text","text":"Yes"}]}'


async def test_it_streams_reasoning_text_calls_reason_and_usage(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    server.script(
        Script(
            reasoning=["I ", "see"],
            redacted=["c2VjcmV0"],
            tokens=["One ", "moment"],
            tool_calls=[ToolCall("toolu_1", "look", ['{"at":', '"it"}'])],
            usage={"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 9},
        )
    )
    answer = await deltas(make_anthropic())
    assert answer == [
        ReasoningDelta(""),
        ReasoningDelta("I "),
        ReasoningDelta("see"),
        ReasoningDelta(""),
        TextDelta("One "),
        TextDelta("moment"),
        ToolCallDelta(3, "toolu_1", "look", ""),
        ToolCallDelta(3, None, None, '{"at":'),
        ToolCallDelta(3, None, None, '"it"}'),
        Replay(
            (
                {"type": "reasoning", "text": "I see", "signature": "c2lnbmVk+/=="},
                {"type": "redacted_reasoning", "data": "c2VjcmV0"},
                {"type": "text", "text": "One moment"},
                {"type": "tool_call", "index": 3},
            )
        ),
        Finish("tool_calls"),
        Usage(7, 4, 9, None),
    ]


async def test_it_yields_the_first_delta_alone_and_at_once(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    assert (await batches(make_anthropic()))[0] == [TextDelta("Hello")]


async def test_it_waits_for_a_model_that_thinks_without_a_word(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    """The block that begins is the sign of life that the first token is elsewhere."""
    gate, thinking = Gate(), {"type": "thinking", "thinking": ""}
    start = {"type": "content_block_start", "index": 0, "content_block": thinking}
    rest = b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n'
    server.script(Script(raw=[f"data: {json.dumps(start)}\n\n".encode(), rest], gates={1: gate}))
    provider = make_anthropic(first_token_timeout_s=0.2, idle_timeout_s=30)
    stream = provider.stream(a_request(provider))
    assert await anext(stream) == [ReasoningDelta("")]
    asyncio.get_running_loop().call_later(0.4, gate.release)
    assert [delta for batch in [one async for one in stream] for delta in batch] == [Finish("stop")]


async def test_it_tells_how_much_of_a_grown_request_was_cached(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    provider = make_anthropic()
    await deltas(provider, BLOCKS)
    usage = (await deltas(provider, BLOCKS, YES, BLOCKS))[-1]
    assert isinstance(usage, Usage)
    assert usage.cached_tokens is not None
    assert usage.input_tokens is not None
    assert 0 < usage.cached_tokens < usage.input_tokens


async def test_it_uses_one_connection_for_request_after_request(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    provider = make_anthropic()
    for _ in range(3):
        await deltas(provider)
    assert len({record.peer for record in server.requests}) == 1


@pytest.mark.parametrize(
    ("status", "kind", "said", "wanted", "sentence"),
    [
        (401, "authentication_error", "invalid x-api-key", ModelAuth, "Check ANTHROPIC_API_KEY."),
        (403, "permission_error", "no", ModelAuth, "does not allow this key"),
        (404, "not_found_error", "model: x", ModelInvalid, "does not know this model"),
        (402, "billing_error", "no", ModelRateLimited, "no credit left"),
        (400, "invalid_request_error", "Your credit balance is too low", ModelRateLimited,
         "no credit left"),
        (413, "request_too_large", "Request exceeds 32 MB", ContextFull, "no longer fits"),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum",
         ContextFull, "no longer fits"),
        (400, "invalid_request_error",
         "input length and `max_tokens` exceed context limit: 199000 + 32000", ContextFull,
         "no longer fits"),
        (400, "invalid_request_error", "Output blocked by content filtering policy",
         ModelRefused, "content filter"),
        (400, "invalid_request_error", "messages: bad", ModelInvalid,
         "did not accept the request (messages: bad)"),
        (429, "rate_limit_error", "slow down", ModelRateLimited, "too many requests"),
        (500, "api_error", "oh", ModelUnavailable, "status 500"),
        (504, "timeout_error", "oh", ModelUnavailable, "status 504"),
        (529, "overloaded_error", "Overloaded", ModelUnavailable, "status 529"),
    ],
)  # fmt: skip
async def test_it_says_what_an_error_means(
    make_anthropic: MakeAnthropic,
    server: FakeModelServer,
    status: int,
    kind: str,
    said: str,
    wanted: type[ProviderError],
    sentence: str,
) -> None:
    server.script(Script(status=status, error={"type": kind, "message": said}))
    failed = await failure(make_anthropic(max_retries=0))
    assert type(failed) is wanted
    assert sentence in str(failed)
    assert "Your message is kept." in str(failed)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("overloaded_error", ModelUnavailable),
        ("api_error", ModelUnavailable),
        ("rate_limit_error", ModelRateLimited),
        ("authentication_error", ModelAuth),
        ("permission_error", ModelAuth),
        ("invalid_request_error", ModelInvalid),
        ("request_too_large", ContextFull),
    ],
)
async def test_it_reads_errors_within_the_stream(
    make_anthropic: MakeAnthropic, server: FakeModelServer, kind: str, wanted: type[ProviderError]
) -> None:
    body = f'event: error\ndata: {{"type":"error","error":{{"type":"{kind}","message":"x"}}}}\n\n'
    server.script(Script(raw=[body.encode()]))
    assert type(await failure(make_anthropic(max_retries=0))) is wanted


async def test_it_tries_again_when_the_server_is_overloaded(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    overloaded = {"type": "overloaded_error", "message": "Overloaded"}
    server.script(
        Script(status=529, error=overloaded),
        Script(raw=[b'data: {"type": "error", "error": {"type": "overloaded_error"}}\n\n']),
        Script(tokens=["At last"]),
    )
    assert text_of(await deltas(make_anthropic(max_retries=2))) == "At last"
    assert len({record.body for record in server.requests}) == 1


async def test_it_needs_no_key_for_a_server_of_ones_own(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    provider = make_anthropic(api_key=None)
    assert await provider.default_model() == "fake-1"
    assert text_of(await deltas(provider)) == "Hello, world!"


async def test_it_takes_an_address_with_and_without_v1(
    make_anthropic: MakeAnthropic, server: FakeModelServer
) -> None:
    for address in (server.url, server.url + "/", server.url.removesuffix("/v1")):
        assert text_of(await deltas(make_anthropic(base_url=address))) == "Hello, world!"


async def test_it_knows_a_default_for_anthropic_itself() -> None:
    provider = AnthropicProvider(GatewayConfig(), api_key=KEY)
    assert await provider.default_model() == DEFAULT_MODEL
    await provider.aclose()


async def test_a_key_alone_means_anthropics_default() -> None:
    providers = Providers(GatewayConfig(anthropic_api_key=KEY))
    provider, model = await providers.resolve("")
    assert (provider.name, model) == ("anthropic", DEFAULT_MODEL)
    assert provider.wire is providers.get("anthropic").wire
    cost = providers.cost_usd("anthropic", DEFAULT_MODEL, Usage(1000, 500, 10, 100))
    assert cost is not None
    await providers.aclose()


async def test_openai_comes_first_where_both_have_a_key() -> None:
    providers = Providers(GatewayConfig(anthropic_api_key=KEY, openai_api_key=KEY))
    assert providers.site_default == "openai:"
