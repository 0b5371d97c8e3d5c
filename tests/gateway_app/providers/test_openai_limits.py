"""Attempts, time limits, and connections that are closed: the provider over real HTTP."""

import asyncio
from time import perf_counter

import pytest

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.providers.asking import a_request, deltas, failure, text_of
from tests.gateway_app.providers.conftest import MakeProvider


async def test_it_closes_the_connection_when_the_iterator_is_closed(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(gates={1: Gate()}))
    provider = make_provider()
    stream = provider.stream(a_request(provider))
    await anext(stream)
    await stream.aclose()
    record = await server.request(0)
    await record.ended.wait()
    assert record.closed_by_client
    assert record.pieces_sent == 1


@pytest.mark.parametrize(
    "script", [Script(headers_gate=Gate()), Script(gates={0: Gate()}), Script(gates={2: Gate()})]
)
async def test_it_closes_the_connection_when_the_task_is_cancelled(
    make_provider: MakeProvider, server: FakeModelServer, script: Script
) -> None:
    server.script(script)
    provider = make_provider()
    reader = asyncio.create_task(deltas(provider))
    record = await server.request(0)
    if script.headers_gate is None:
        await record.started.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await record.ended.wait()
    assert record.closed_by_client


async def test_it_tries_again_before_the_first_token_and_not_after_it(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    provider = make_provider(max_retries=2)
    server.script(Script(status=503), Script(cut_at_byte=0), Script(tokens=["At last"]))
    assert text_of(await deltas(provider)) == "At last"
    assert len(server.requests) == 3
    assert len({record.body for record in server.requests}) == 1

    server.script(Script(cut_at_byte=700))
    error = await failure(provider)
    assert error.code == "model_unavailable"
    assert len(server.requests) == 4


async def test_it_waits_as_long_as_the_server_asks(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(status=429, headers={"Retry-After": "0.2"}))
    assert text_of(await deltas(make_provider())) == "Hello, world!"
    first, second = server.requests
    assert second.at - first.at >= 0.2


async def test_it_does_not_wait_for_ever_if_the_server_asks(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(status=429, headers={"Retry-After": "3600"}))
    error = await failure(make_provider())
    assert (error.code, error.retry_after_ms) == ("model_rate_limited", 3_600_000)
    assert len(server.requests) == 1


async def test_it_does_not_wait_beyond_its_own_limit(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(status=429, headers={"Retry-After": "15"}))
    error = await failure(make_provider(first_token_timeout_s=5))
    assert error.code == "model_rate_limited"


async def test_it_gives_up_after_its_last_attempt(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.default = Script(status=500)
    error = await failure(make_provider(max_retries=2))
    assert error.code == "model_unavailable"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "script",
    [
        Script(headers_gate=Gate()),
        Script(gates={0: Gate()}),
        Script(raw=[b": still here\n\n", b"data: x"], gates={1: Gate()}),
    ],
)
async def test_it_limits_the_wait_for_the_first_token(
    make_provider: MakeProvider, server: FakeModelServer, script: Script
) -> None:
    server.script(script)
    error = await failure(make_provider(first_token_timeout_s=0.3))
    assert error.code == "model_timeout"
    assert str(error) == (
        "The model provider did not answer for 0.3 s. Your message is kept. Try again later."
    )
    record = await server.request(0)
    await record.ended.wait()
    assert record.closed_by_client
    assert len(server.requests) == 1


async def test_it_limits_the_silence_within_an_answer(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(gates={2: Gate()}))
    provider = make_provider(idle_timeout_s=0.1)
    error = await failure(provider)
    assert error.code == "model_timeout"
    assert "silent for 0.1 s" in str(error)
    record = await server.request(0)
    await record.ended.wait()
    assert record.closed_by_client
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_it_limits_an_answer_as_a_whole(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    server.script(Script(tokens=["again "] * 10_000, token_delay_s=0.01))
    error = await failure(make_provider(total_timeout_s=0.2))
    assert error.code == "model_timeout"
    assert "had not ended its answer after 0.2 s" in str(error)


async def test_it_does_not_take_a_stop_for_a_silence(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    """The race: the task is cancelled in the very turn of the loop in which the limit is due."""
    server.script(Script(gates={1: Gate()}))
    provider = make_provider(idle_timeout_s=0.1)
    reading = asyncio.Event()

    async def read() -> None:
        async for _ in provider.stream(a_request(provider)):
            reading.set()

    reader = asyncio.create_task(read())
    await reading.wait()
    for _ in range(3):  # until the reader waits for the second token
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.1, reader.cancel)
    busy_until = perf_counter() + 0.15
    while perf_counter() < busy_until:  # so both are due in the next turn
        pass
    with pytest.raises(asyncio.CancelledError):
        await reader
