"""Which conversation has which slot of the model, and who waits for one.

A slot holds the tokens of one conversation. llama.cpp left alone gives a slot to whoever shares a
prefix with it, so that two conversations with one system prompt push each other out.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class SlotTable:
    """Sticky slots: a conversation keeps its own until the least recently used one is needed."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._idle: dict[int, None] = dict.fromkeys(range(count))
        """Least recently used first; slots that nobody had yet stand at the front."""
        self._session_of: dict[int, str] = {}
        self._slot_of: dict[str, int] = {}

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return self.count - len(self._idle)

    def take(self, session: str | None) -> int | None:
        """A slot that is now busy: the conversation's own, else the least recently used idle one.

        None if it must wait: all slots are busy, or its own is. `session` None is a request that
        belongs to no conversation; its slot is nobody's afterwards.
        """
        slot = self._slot_of.get(session) if session is not None else None
        if slot is None:
            slot = next(iter(self._idle), None)
            if slot is None:
                return None
            self._assign(slot, session)
        elif slot not in self._idle:
            return None
        del self._idle[slot]
        return slot

    def give_back(self, slot: int) -> None:
        """The slot is idle and the most recently used. Its conversation keeps it."""
        self._idle[slot] = None

    def _assign(self, slot: int, session: str | None) -> None:
        former = self._session_of.pop(slot, None)
        if former is not None:
            del self._slot_of[former]
        if session is not None:
            self._session_of[slot] = session
            self._slot_of[session] = slot


class SlotQueue:
    """Leases slots in one event loop; who finds none waits, first come, first served."""

    def __init__(self, table: SlotTable) -> None:
        self._table = table
        self._waiters: list[tuple[str | None, asyncio.Future[int]]] = []

    @property
    def busy(self) -> int:
        return self._table.busy

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    @asynccontextmanager
    async def lease(self, session: str | None) -> AsyncIterator[int]:
        """A slot for the block's duration; given back however the block ends."""
        slot = await self._acquire(session)
        try:
            yield slot
        finally:
            self._release(slot)

    async def _acquire(self, session: str | None) -> int:
        # who waits could not take any idle slot when one last came free: nobody is overtaken
        slot = self._table.take(session)
        if slot is not None:
            return slot
        granted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        place = (session, granted)
        self._waiters.append(place)
        try:
            return await granted
        except asyncio.CancelledError:
            if place in self._waiters:
                self._waiters.remove(place)
            else:
                # the slot came in the same moment as the cancellation
                self._release(granted.result())
            raise

    def _release(self, slot: int) -> None:
        self._table.give_back(slot)
        still_waiting = []
        for session, granted in self._waiters:
            taken = None if granted.cancelled() else self._table.take(session)
            if taken is None:
                still_waiting.append((session, granted))
            else:
                granted.set_result(taken)
        self._waiters = still_waiting
