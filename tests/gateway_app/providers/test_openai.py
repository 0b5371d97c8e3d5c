"""The provider over real HTTP: what it yields, when, and what it leaves open."""

import asyncio
import gc
from collections.abc import Mapping
from contextlib import aclosing
from time import perf_counter

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.providers.base import (
    Finish,
    ModelInvalid,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from gateway_app.providers.openai import DEFAULT_MODEL, OpenAIProvider
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.providers.asking import a_request, batches, deltas, text_of
from tests.gateway_app.providers.conftest import KEY, MakeProvider


async def test_it_streams_text_then_the_reason_then_the_usage(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(tokens=["Good ", "day"]))
    answer = await deltas(make_provider())
    usage = answer.pop()
    assert answer == [TextDelta("Good "), TextDelta("day"), Finish("stop")]
    assert isinstance(usage, Usage)
    assert (usage.cached_tokens, usage.output_tokens) == (0, 2)


async def test_it_tells_how_much_of_a_grown_request_was_cached(
    make_provider: MakeProvider,
) -> None:
    provider = make_provider()
    first = '{"role":"user","content":"A question of some length, to be cached"}'
    one = (await deltas(provider, first))[-1]
    two = (await deltas(provider, first, '{"role":"assistant","content":"Yes"}'))[-1]
    assert isinstance(one, Usage)
    assert isinstance(two, Usage)
    assert one.input_tokens is not None
    assert two.cached_tokens in {one.input_tokens - 1, one.input_tokens}


async def test_it_yields_the_first_delta_alone_and_at_once(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    gate = Gate()
    server.script(Script(tokens=["one", "two", "three"], gates={1: gate}))
    provider = make_provider()
    async with aclosing(provider.stream(a_request(provider))) as stream:
        assert await anext(stream) == [TextDelta("one")]
        gate.release()
        rest = [delta async for batch in stream for delta in batch]
    assert rest[:3] == [TextDelta("two"), TextDelta("three"), Finish("stop")]


async def test_it_yields_the_first_delta_alone_even_if_all_came_at_once(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    body = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n' * 3 + b"data: [DONE]\n\n"
    server.script(Script(raw=[body]))
    answer = await batches(make_provider())
    assert answer[0] == [TextDelta("a")]
    assert [delta for batch in answer[1:] for delta in batch] == [
        TextDelta("a"),
        TextDelta("a"),
        Finish("stop"),
    ]


async def test_it_gives_the_loop_a_turn_between_batches_that_were_buffered(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(tokens=["word "] * 400))
    provider = make_provider()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    seen: list[int] = []
    async with aclosing(provider.stream(a_request(provider))) as stream:
        await anext(stream)
        await (await server.request(0)).ended.wait()  # the rest is on this side already
        async for _ in stream:
            seen.append(turns)
            busy_until = perf_counter() + 0.0012
            while perf_counter() < busy_until:
                pass
    beside.cancel()
    assert len(seen) > 2
    assert len(set(seen)) == len(seen)


async def test_it_yields_reasoning_of_both_spellings(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    provider = make_provider()
    for spelling in ("reasoning_content", "reasoning"):
        server.script(Script(reasoning=["Hm, ", "so"], reasoning_field=spelling, tokens=["Yes"]))
        answer = await deltas(provider)
        assert answer[:3] == [ReasoningDelta("Hm, "), ReasoningDelta("so"), TextDelta("Yes")]


async def test_it_yields_tool_calls_piece_by_piece(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    calls = [ToolCall("c1", "look", ['{"a"', ": 1}"]), ToolCall("c2", "ask")]
    server.script(Script(tokens=[], tool_calls=calls))
    answer = await deltas(make_provider())
    assert answer[:-1] == [
        ToolCallDelta(0, "c1", "look", ""),
        ToolCallDelta(0, None, None, '{"a"'),
        ToolCallDelta(0, None, None, ": 1}"),
        ToolCallDelta(1, "c2", "ask", ""),
        ToolCallDelta(1, None, None, "{}"),
        Finish("tool_calls"),
    ]


async def test_it_passes_an_empty_answer_up(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(tokens=[], send_usage=False))
    assert await deltas(make_provider()) == [Finish("stop")]


@pytest.mark.parametrize(
    "script",
    [
        Script(done=False),
        Script(usage_null=True),
        Script(finish_reason=None),
        Script(content_type="text/plain"),
    ],
)
async def test_it_reads_the_answers_of_servers_that_differ(
    make_provider: MakeProvider, server: FakeModelServer, script: Script
) -> None:
    server.script(script)
    answer = await deltas(make_provider())
    assert text_of(answer) == "Hello, world!"
    assert Finish("stop") in answer
    assert sum(isinstance(delta, Usage) for delta in answer) == 1


async def test_it_reads_an_answer_that_was_not_streamed(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    body = (
        b'{"choices": [{"message": {"role": "assistant", "content": "All at once"},'
        b' "finish_reason": "length"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}'
    )
    server.script(Script(raw=[body], content_type="application/json"))
    answer = await deltas(make_provider())
    assert answer == [TextDelta("All at once"), Finish("length"), Usage(3, None, 2)]


async def test_it_takes_a_cut_after_the_finish_reason_for_the_end(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    last = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
    server.script(Script(raw=[last, b"data: [DO"], cut_at_byte=len(last) + 4))
    assert await deltas(make_provider()) == [TextDelta("a"), Finish("stop")]


async def test_it_uses_one_connection_for_request_after_request(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    provider = make_provider()
    for _ in range(5):
        await deltas(provider)
    assert len({record.peer for record in server.requests}) == 1


async def test_it_waits_a_moment_for_the_end_of_the_response(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    """Otherwise each answer whose last bytes come late would cost a connection."""
    provider = make_provider()
    for number in range(2):
        late = Gate()
        body = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'
        server.script(Script(raw=[body], end_gate=late))
        reader = asyncio.create_task(deltas(provider))
        await (await server.request(number)).started.wait()
        late.release()
        assert await reader == [TextDelta("a"), Finish("stop")]
    assert len({record.peer for record in server.requests}) == 1


async def test_it_asks_another_server_for_its_first_model_once(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.models = ["first", "second"]
    provider = make_provider()
    assert [await provider.default_model() for _ in range(2)] == ["first", "first"]
    assert server.model_lists == 1


async def test_it_says_so_when_a_server_lists_no_models(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.models = []
    with pytest.raises(ModelInvalid, match="lists no models"):
        await make_provider().default_model()


async def test_it_knows_a_default_for_openai_itself() -> None:
    provider = OpenAIProvider(GatewayConfig(), api_key=KEY)
    assert await provider.default_model() == DEFAULT_MODEL
    await provider.aclose()


async def test_it_leaves_nothing_open(server: FakeModelServer, make_provider: MakeProvider) -> None:
    """ResourceWarning is an error here; aiohttp gives one for a session that was not closed."""
    provider = make_provider()
    await deltas(provider)
    stream = provider.stream(a_request(provider))
    await anext(stream)
    await stream.aclose()
    await provider.aclose()
    del provider, stream
    gc.collect()


async def test_a_subclass_says_where_the_server_is_and_adds_headers(
    server: FakeModelServer,
) -> None:
    class Elsewhere(OpenAIProvider):
        async def address(self) -> str:
            return server.url

        def headers(self, request: ModelRequest) -> Mapping[str, str]:
            return {"X-Session": str(request.session_id)}

    provider = Elsewhere(GatewayConfig(), name="elsewhere", base_url="http://nowhere.invalid")
    request = a_request(provider)
    async for _ in provider.stream(request):
        pass
    assert server.requests[0].headers["x-session"] == str(request.session_id)
    await provider.aclose()
