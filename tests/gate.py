"""How a test holds another thread or loop back, and waits for it, without sleeping."""

import asyncio
import threading
from concurrent.futures import Future

WAIT_S = 90.0
"""A test that waits longer than this for the server has failed."""


class Gate:
    """A latch between threads and loops: whoever waits goes on once it was released."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._waiters: list[Future[None]] = []

    def release(self) -> None:
        with self._lock:
            self._open.set()
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.set_running_or_notify_cancel():
                waiter.set_result(None)

    @property
    def released(self) -> bool:
        return self._open.is_set()

    async def passed(self) -> None:
        """Returns once released; without a limit of time (the server's side)."""
        with self._lock:
            if self._open.is_set():
                return
            waiter: Future[None] = Future()
            self._waiters.append(waiter)
        await asyncio.wrap_future(waiter)

    async def wait(self, timeout_s: float = WAIT_S) -> None:
        """Returns once released, in any event loop; raises TimeoutError after `timeout_s`."""
        async with asyncio.timeout(timeout_s):
            await self.passed()

    def wait_sync(self, timeout_s: float = WAIT_S) -> None:
        if not self._open.wait(timeout_s):
            raise TimeoutError
