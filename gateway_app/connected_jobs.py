"""Jobs for threads that bring a connection: a job goes to a thread that has one.

So no job waits for a connection while another thread has one to spare, however few the database
gives out. Of the threads that wait, the one that worked last is next: the others find out that
nobody needs their connections, and let go of them.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

PATIENCE_S: Final = 5
"""So long at least a job waits for a connection before it is refused for want of one."""
LONG_PATIENCE_S: Final = 15
"""So long if another thread has one, which might come to the job."""

Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class ConnectedJobs:
    """A thread's life: `need`; then `connected` or `refused`; `take` until None; `left`; anew."""

    def __init__(self) -> None:
        self._needed = threading.Condition()
        self._waiting: deque[tuple[float, Job]] = deque()
        self._idle: list[_Seat] = []
        self._connecting = self._connected = 0
        self._closing = False

    def qsize(self) -> int:
        """How many jobs wait for a thread."""
        return len(self._waiting)

    def put(self, job: Job) -> None:
        with self._needed:
            if self._idle:
                self._idle.pop().give(job)
            else:
                self._waiting.append((monotonic(), job))
                self._needed.notify()

    def put_back(self, job: Job) -> None:
        """It was taken, has not begun, and is the next one."""
        with self._needed:
            if self._idle:
                self._idle.pop().give(job)
            else:
                self._waiting.appendleft((monotonic(), job))

    def open(self) -> None:
        self._closing = False

    def close(self) -> None:
        """Threads end when no job waits any more."""
        with self._needed:
            self._closing = True
            while self._idle:
                self._idle.pop().give(None)
            self._needed.notify_all()

    def need(self) -> bool:
        """Waits for a job for which no connection is on its way. False: there will be none."""
        with self._needed:
            self._needed.wait_for(lambda: self._closing or len(self._waiting) > self._connecting)
            if not self._waiting:
                return False
            self._connecting += 1
            return True

    def connected(self) -> None:
        """The thread that was needed has a connection."""
        with self._needed:
            self._connecting -= 1
            self._connected += 1

    def refused(self) -> list[Job]:
        """The thread that was needed has none. The jobs that have waited for it long enough."""
        with self._needed:
            self._connecting -= 1
            patience_s = LONG_PATIENCE_S if self._connected else PATIENCE_S
            until = monotonic() - (0 if self._closing else patience_s)
            given_up: list[Job] = []
            while self._waiting and self._waiting[0][0] <= until:
                given_up.append(self._waiting.popleft()[1])
            return given_up

    def left(self) -> None:
        """The thread has let go of its connection."""
        with self._needed:
            self._connected -= 1
            self._needed.notify()

    def take(self, idle_s: float) -> Job | None:
        """The next job, for a thread with a connection. None: nobody needs it at present."""
        with self._needed:
            if self._waiting:
                return self._waiting.popleft()[1]
            if self._closing:
                return None
            seat = _Seat()
            self._idle.append(seat)
        if not seat.wait(idle_s):
            with self._needed:
                if seat in self._idle:
                    self._idle.remove(seat)
        return seat.job


class _Seat:
    """Where one thread waits for one job."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self._taken = threading.Lock()
        self._taken.acquire()

    def give(self, job: Job | None) -> None:
        self.job = job
        self._taken.release()

    def wait(self, limit_s: float) -> bool:
        """False: nothing was given."""
        return self._taken.acquire(timeout=limit_s)
