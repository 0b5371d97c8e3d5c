"""The line between async code and the database: order, isolation, errors, cancellation."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from django.db import DatabaseError, connection

from gateway_app.database_threads import DatabaseLanes
from gateway_app.models import JobLease
from sessions_app import database as db
from tests.sqlite_lock import Rings, held_elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def lanes() -> AsyncIterator[DatabaseLanes]:
    made = DatabaseLanes(readers=2, postgres=4)
    made.start()
    yield made
    await asyncio.to_thread(made.close)


async def test_it_runs_writes_in_the_order_they_were_given(lanes: DatabaseLanes) -> None:
    if connection.vendor != "sqlite":
        return  # PostgreSQL has several writers; each session's lock orders its own writes
    done: list[int] = []
    await asyncio.gather(*(lanes.write(done.append, number) for number in range(200)))
    assert done == list(range(200))


async def test_it_lets_a_reader_read_what_a_writer_committed_and_nothing_else(
    lanes: DatabaseLanes,
) -> None:
    await lanes.write(JobLease.objects.create, name="one")
    assert await lanes.read(JobLease.objects.count) == 1
    if connection.vendor == "sqlite":
        with pytest.raises(DatabaseError, match="readonly"):
            await lanes.read(db.execute, "DELETE FROM gateway_app_joblease")


async def test_it_gives_an_error_to_the_one_who_waits_and_goes_on(lanes: DatabaseLanes) -> None:
    with pytest.raises(ZeroDivisionError):
        await lanes.write(divmod, 1, 0)
    assert await lanes.write(divmod, 7, 2) == (3, 1)


async def test_it_commits_a_write_whose_waiter_was_cancelled(lanes: DatabaseLanes) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go.wait(30)
        JobLease.objects.create(name="kept")

    waiting = asyncio.ensure_future(lanes.write(slow))
    await asyncio.to_thread(begun.wait, 30)
    waiting.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    found = lanes.write(JobLease.objects.filter(name="kept").count)
    if connection.vendor == "sqlite":
        assert await found == 1
    else:
        await found
        await asyncio.to_thread(lanes.close)
        lanes.start()
        assert await lanes.read(JobLease.objects.filter(name="kept").count) == 1


async def test_it_answers_many_jobs_at_once(lanes: DatabaseLanes) -> None:
    found = await asyncio.gather(*(lanes.read(pow, 2, number) for number in range(500)))
    assert found == [2**number for number in range(500)]


async def test_it_goes_on_collecting_garbage_while_the_writer_waits_for_a_lock(
    lanes: DatabaseLanes,
) -> None:
    """A cursor of the waiting connection needs what SQLite holds while it waits by itself."""
    if connection.vendor != "sqlite":
        return  # no connection of PostgreSQL shares a mutex with its cursors

    rings, asked = Rings(), threading.Event()
    await lanes.write(lambda: rings.make(db.connection(), lambda _: asked.set()))
    gc.disable()
    try:
        with held_elsewhere(connection.settings_dict["NAME"]) as release:
            waiting = asyncio.ensure_future(lanes.write(JobLease.objects.create, name="late"))
            await asyncio.to_thread(asked.wait, 60)
            rings.collect()
            assert await lanes.read(JobLease.objects.count) == 0
            assert not waiting.done()
            release()
        await waiting
    finally:
        gc.enable()
    assert await lanes.read(JobLease.objects.count) == 1


async def test_it_loses_no_job_after_one_that_lived_with_a_lost_connection() -> None:
    """Nobody who awaits such a job hears of the loss, and the next job must not pay for it."""
    if connection.vendor == "sqlite":
        return  # its connections are in this process

    def shrug() -> None:
        with suppress(DatabaseError):
            db.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    lanes = DatabaseLanes(readers=1, postgres=1)
    lanes.start()
    try:
        for _ in range(2):
            await lanes.write(shrug)
            async with asyncio.timeout(30):
                assert await lanes.read(JobLease.objects.count) == 0
    finally:
        await asyncio.to_thread(lanes.close)
