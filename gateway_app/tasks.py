"""The end of tasks."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

_AGAIN_S: Final = 0.5


async def end_tasks(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Every one of these tasks has ended, by itself or cancelled; what it raised is nobody's news.

    A cancellation can be lost: Python 3.11's `asyncio.wait_for` drops one that comes in the very
    step in which what it waits for is there (gh-86296), and redis-py sends each command by it. A
    task that goes on is told again.
    """
    ending = left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_S)
    await asyncio.gather(*ending, return_exceptions=True)
