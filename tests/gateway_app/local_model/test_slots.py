"""The slot table and its queue."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_app.local_model.slots import SlotQueue, SlotTable


def use(table: SlotTable, session: str | None) -> int:
    """One request of the session, begun and ended."""
    slot = table.take(session)
    assert slot is not None
    table.give_back(slot)
    return slot


def test_it_gives_each_conversation_a_slot_of_its_own():
    table = SlotTable(3)
    assert len({use(table, "a"), use(table, "b"), use(table, "c")}) == 3


def test_it_gives_a_conversation_its_slot_again():
    table = SlotTable(3)
    first = use(table, "a")
    use(table, "b")
    assert use(table, "a") == first


def test_it_takes_the_least_recently_used_slot_first():
    table = SlotTable(3)
    slots = {name: use(table, name) for name in "abc"}
    use(table, "a")
    assert use(table, "d") == slots["b"]
    assert use(table, "a") == slots["a"]
    assert use(table, "b") == slots["c"]


def test_it_counts_use_from_the_end_of_a_request():
    table = SlotTable(2)
    long = table.take("a")
    assert long is not None
    short = use(table, "b")
    table.give_back(long)
    assert use(table, "c") == short


def test_it_never_takes_a_slot_that_generates():
    table = SlotTable(2)
    first, second = table.take("a"), table.take("b")
    assert first is not None
    assert second is not None
    assert table.take("c") is None
    table.give_back(second)
    assert table.take("c") == second
    assert table.busy == 2


def test_it_makes_a_conversation_wait_for_its_own_slot_though_others_are_idle():
    table = SlotTable(2)
    slot = table.take("a")
    assert slot is not None
    assert table.take("a") is None
    table.give_back(slot)
    assert table.take("a") == slot


def test_it_keeps_no_slot_for_requests_of_no_conversation():
    table = SlotTable(1)
    slot = use(table, "a")
    assert use(table, None) == slot
    assert use(table, "b") == slot


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=60),
)
def test_it_never_lends_a_slot_twice_nor_moves_a_conversation_without_need(count, steps):
    table = SlotTable(count)
    lent: dict[str, int] = {}
    last_user: dict[int, str] = {}
    for ends, session in steps:
        if ends and session in lent:
            table.give_back(lent.pop(session))
            continue
        slot = table.take(session)
        if slot is None:
            assert session in lent or len(lent) == count
            continue
        assert slot not in lent.values()
        if session in last_user.values():
            assert last_user[slot] == session
        last_user[slot] = session
        lent[session] = slot
        assert table.busy == len(lent)


async def until_waiting(queue: SlotQueue, count: int) -> None:
    for _ in range(100):
        if queue.waiting == count:
            return
        await asyncio.sleep(0)
    pytest.fail(f"{queue.waiting} wait, not {count}")


class Requests:
    """Requests that hold their slot until told to end."""

    def __init__(self, slots: int) -> None:
        self.queue = SlotQueue(SlotTable(slots))
        self.began: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, name: str, session: str | None = None) -> asyncio.Task[None]:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._run(name, session or name))
        return self._tasks[name]

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]

    async def _run(self, name: str, session: str) -> None:
        async with self.queue.lease(session):
            self.began.append(name)
            await self._ends[name].wait()


@pytest.fixture
async def requests():
    async with AsyncExitStack() as stack:
        made = Requests(slots=1)

        async def end_all():
            for task in made._tasks.values():
                task.cancel()
            await asyncio.gather(*made._tasks.values(), return_exceptions=True)

        stack.push_async_callback(end_all)
        yield made


async def test_it_serves_who_waits_in_order(requests):
    for name in "abc":
        requests.begin(name)
    await until_waiting(requests.queue, 2)
    assert requests.began == ["a"]
    await requests.end("a")
    await until_waiting(requests.queue, 1)
    await requests.end("b")
    await until_waiting(requests.queue, 0)
    await requests.end("c")
    assert requests.began == ["a", "b", "c"]
    assert requests.queue.busy == 0


async def test_it_forgets_who_gives_up_waiting(requests):
    for name in "abc":
        requests.begin(name)
    await until_waiting(requests.queue, 2)
    requests._tasks["b"].cancel()
    await until_waiting(requests.queue, 1)
    await requests.end("a")
    await until_waiting(requests.queue, 0)
    await requests.end("c")
    assert requests.began == ["a", "c"]


async def test_it_passes_a_slot_on_that_came_as_its_waiter_was_cancelled(requests):
    requests.begin("a")
    requests.begin("b")
    await until_waiting(requests.queue, 1)
    requests.begin("c")
    await until_waiting(requests.queue, 2)
    requests._ends["a"].set()
    # when this returns, the slot is b's, but b has not run yet
    await until_waiting(requests.queue, 1)
    requests._tasks["b"].cancel()
    await until_waiting(requests.queue, 0)
    await requests.end("c")
    assert requests.began == ["a", "c"]
    assert requests.queue.busy == 0


async def test_it_gives_a_slot_back_when_the_block_fails(requests):
    with pytest.raises(RuntimeError, match="broken"):
        async with requests.queue.lease("a"):
            raise RuntimeError("broken")
    assert requests.queue.busy == 0


async def test_it_keeps_two_requests_of_one_conversation_apart():
    requests = Requests(slots=2)
    requests.begin("first", session="a")
    requests.begin("second", session="a")
    await until_waiting(requests.queue, 1)
    requests.begin("other", session="b")
    await requests.end("other")
    assert requests.began == ["first", "other"]
    await requests.end("first")
    await requests.end("second")
    assert requests.began == ["first", "other", "second"]
