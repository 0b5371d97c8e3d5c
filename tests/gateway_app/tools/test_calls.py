"""Calls by themselves: threads are few, what hangs is given up, and nobody waits for it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction

from gateway_app.config import GatewayConfig
from gateway_app.tools import ToolContext, ToolError
from gateway_app.tools.calls import BROKE, DENIED, Outcome, ToolCalls
from gateway_app.tools.python_function import function_tool
from hermes_site.environment import postgres_databases
from sessions_app.models import new_id
from tests.gate import Gate

CONTEXT = ToolContext(User(username="ann"), new_id(), new_id(), "a1")


def tool_calls(**limits: Any) -> ToolCalls:
    return ToolCalls(GatewayConfig(**limits))


async def call(
    calls: ToolCalls,
    function: Callable[..., Any],
    timeout_s: float = 60,
    context: ToolContext = CONTEXT,
) -> Outcome:
    return await calls.call(function_tool(function, timeout_s=timeout_s), "{}", context)


async def test_it_gives_a_place_back_only_when_the_function_has_ended() -> None:
    begun, gate, calls = Gate(), Gate(), tool_calls(tool_threads=1)

    def hang() -> str:
        """Hang."""
        begun.release()
        gate.wait_sync(60)
        return "late"

    def hurry() -> str:
        """Hurry."""
        return "there"

    given_up = await call(calls, hang, timeout_s=0.05)
    assert given_up.content == "It did not answer within 0.05 s, and was given up. It may have run."
    await begun.wait()
    crowded = await call(calls, hurry, timeout_s=0.05)
    assert crowded.error
    assert crowded.content == (
        "It was not run: for 0.05 s other calls took every place. Try again later."
    )
    gate.release()
    assert await call(calls, hurry) == Outcome("there", False, pytest.approx(0, abs=60_000))


async def test_it_waits_for_no_coroutine_that_will_not_end() -> None:
    begun, gate, calls = Gate(), Gate(), tool_calls()

    async def cling() -> str:
        """Cling."""
        begun.release()
        try:
            await Gate().passed()
        except asyncio.CancelledError:
            await gate.passed()
            raise RuntimeError("at last") from None
        return ""

    calling = asyncio.create_task(call(calls, cling))
    await begun.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(60):
            await calling
    gate.release()
    assert (await call(calls, cling, timeout_s=0.05)).error


async def test_it_takes_a_cancelled_tool_for_a_failed_one() -> None:
    async def resign() -> str:
        """Resign."""
        raise asyncio.CancelledError

    assert await call(tool_calls(), resign) == Outcome(
        "It gave up.", True, pytest.approx(0, abs=60_000)
    )


async def test_it_says_that_something_is_not_allowed() -> None:
    def trespass() -> str:
        """Trespass."""
        raise PermissionDenied("of this the model hears nothing")

    assert (await call(tool_calls(), trespass)).content == DENIED


async def test_it_says_what_cannot_be_told(caplog: pytest.LogCaptureFixture) -> None:
    def odd() -> object:
        """Be odd."""
        return object()

    outcome = await call(tool_calls(), odd)
    assert (outcome.error, outcome.content.partition(".")[0]) == (True, "The tool failed")
    assert "object" in caplog.text


class Unheard(BaseException):
    """As libraries raise them to leave a thread."""


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, Unheard])
async def test_it_outlives_whatever_a_tool_raises(error: type[BaseException]) -> None:
    def sync() -> str:
        """Raise."""
        raise error

    async def coroutine() -> str:
        """Raise."""
        raise error

    for function in (sync, coroutine):
        assert (await call(tool_calls(), function)).content == BROKE


async def test_it_takes_an_error_that_cannot_be_said_for_a_fault() -> None:
    class Mute(ToolError):
        def __str__(self) -> str:
            raise AttributeError("detail")

    def refuse() -> str:
        """Refuse."""
        raise Mute

    assert (await call(tool_calls(), refuse)).content == BROKE


async def test_it_cuts_what_is_no_sentence() -> None:
    """Neither a tool nor a model, whose arguments are named, fills the transcript with an error."""

    def refuse(text: str) -> str:
        """Refuse."""
        raise ToolError("long " * 100_000)

    tool, calls = function_tool(refuse), tool_calls()
    for arguments in ('{"text": ""}', json.dumps({f"text{n}": 1 for n in range(100_000)})):
        outcome = await calls.call(tool, arguments, CONTEXT)
        assert outcome.error
        assert len(outcome.content) <= 2001


def hanging_tool(begun: Gate, gate: Gate) -> Callable[[], Awaitable[str]]:
    """Hangs in the thread for what asynchronous code may not do."""

    def wait() -> None:
        begun.release()
        gate.wait_sync(60)

    async def hang() -> str:
        """Hang."""
        await sync_to_async(wait)()
        return "late"

    return hang


async def hurry() -> str:
    """Hurry through the thread for what asynchronous code may not do."""
    return await sync_to_async(str)("there")


async def test_it_lets_no_coroutine_hold_up_the_database_work_of_another() -> None:
    begun, gate, calls = Gate(), Gate(), tool_calls()
    hanging = asyncio.create_task(call(calls, hanging_tool(begun, gate)))
    await begun.wait(60)
    try:
        assert (await call(calls, hurry)).content == "there"
    finally:
        gate.release()
    assert (await hanging).content == "late"


async def test_it_lets_so_many_coroutines_at_the_database_as_functions() -> None:
    """Each has a connection, and PostgreSQL's pool has no more."""
    begun, gate, calls = Gate(), Gate(), tool_calls(tool_threads=1)
    hanging = asyncio.create_task(call(calls, hanging_tool(begun, gate)))
    await begun.wait(60)
    crowded = await call(calls, hurry, timeout_s=0.05)
    gate.release()
    assert crowded.content.startswith("It did not answer within 0.05 s")
    assert (await hanging).content == "late"
    assert (await call(calls, hurry)).content == "there"


@pytest.mark.parametrize("way", ["function", "coroutine"])
async def test_it_leaves_half_of_the_places_to_other_conversations(way: str) -> None:
    """Case C8: those of a call that was given up stay taken."""
    gate, calls, other = Gate(), tool_calls(tool_threads=2), replace(CONTEXT, session_id=new_id())
    begun = [Gate(), Gate()]

    def hang_at(number: int) -> Callable[[], Any]:
        if way == "coroutine":
            return hanging_tool(begun[number], gate)

        def hang() -> str:
            """Hang."""
            begun[number].release()
            gate.wait_sync(60)
            return "late"

        return hang

    def rush() -> str:
        """Rush."""
        return "there"

    first = asyncio.create_task(call(calls, hang_at(0), 0.2))
    await begun[0].wait(60)
    second = asyncio.create_task(call(calls, hang_at(1)))
    try:
        assert (await first).error
        quick = rush if way == "function" else hurry
        assert (await call(calls, quick, context=other)).content == "there"
        assert not begun[1].released
    finally:
        gate.release()
    assert (await second).content == "late"


def test_the_pool_has_room_for_all_of_them_beside_pages_and_turns() -> None:
    pool = postgres_databases("postgres://db/hermes")["default"]["OPTIONS"]["pool"]
    config = GatewayConfig()
    assert pool["max_size"] == 8 + config.postgres_threads + 2 * config.tool_threads


@pytest.mark.django_db(transaction=True)
async def test_it_leaves_no_transaction_open_that_a_coroutine_began() -> None:
    left = []

    def begin() -> None:
        left.append(transaction.atomic())
        left[0].__enter__()
        User.objects.create(username="left open")

    async def forget() -> str:
        """Forget to commit."""
        await sync_to_async(begin)()
        return "done"

    assert (await call(tool_calls(), forget)).content == "done"
    assert not await User.objects.aexists()
    await User.objects.acreate(username="next")
    await sync_to_async(connections.close_all)()
