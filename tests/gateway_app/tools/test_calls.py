"""Calls by themselves: threads are few, what hangs is given up, and nobody waits for it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied

from gateway_app.config import GatewayConfig
from gateway_app.tools import ToolContext
from gateway_app.tools.calls import DENIED, Outcome, ToolCalls
from gateway_app.tools.python_function import function_tool
from sessions_app.models import new_id
from tests.gate import Gate

CONTEXT = ToolContext(User(username="ann"), new_id(), new_id(), "a1")


def tool_calls(**limits: Any) -> ToolCalls:
    return ToolCalls(GatewayConfig(**limits))


async def call(calls: ToolCalls, function: Callable[..., Any], timeout_s: float = 60) -> Outcome:
    return await calls.call(function_tool(function, timeout_s=timeout_s), "{}", CONTEXT)


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
        async with asyncio.timeout(10):
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
