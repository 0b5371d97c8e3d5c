"""Tasks end, though a cancellation may get lost on the way."""

import asyncio

from gateway_app.tasks import end_tasks


async def test_it_ends_a_task_whose_cancellation_was_lost() -> None:
    """What `asyncio.wait_for` waits for is there in the step in which the cancellation comes."""
    waiting, answer = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def ask_and_go_on() -> None:
        waiting.set()
        await asyncio.wait_for(answer, 60)
        await asyncio.Event().wait()

    task = asyncio.create_task(ask_and_go_on())
    await waiting.wait()
    answer.set_result(None)
    async with asyncio.timeout(60):
        await end_tasks([task])
    assert task.cancelled()


async def test_it_does_not_care_how_a_task_ended() -> None:
    async def broken() -> None:
        raise ValueError

    tasks = [asyncio.create_task(broken()), asyncio.create_task(asyncio.sleep(0))]
    await asyncio.wait(tasks)
    await end_tasks(tasks)
    await end_tasks([])
