"""A limit on silence that costs next to nothing a token."""

import asyncio


class SilenceWatch:
    """Cancels a read that waits too long; one timer a stream, looked at when it is due.

    `asyncio.timeout` around each read is the same with a new timer each time: 5 us a token.
    """

    def __init__(self, *, idle_s: float, end: float) -> None:
        """A read may wait `idle_s`, and not beyond `end` (the loop's time)."""
        self._loop = asyncio.get_running_loop()
        self._idle_s, self._end = idle_s, end
        self._task: asyncio.Task[object] | None = None
        self._since = self._loop.time()
        self._cancelling = 0
        self._fired = False
        self._timer = self._loop.call_at(min(self._since + idle_s, end), self._look)

    def begin(self) -> None:
        """The running task starts to wait."""
        self._task = task = asyncio.current_task()
        self._cancelling = task.cancelling() if task is not None else 0
        self._since = self._loop.time()

    def ends_it(self) -> bool:
        """Whether the cancellation that the reading task just got is this watch's, and only its.

        Must be asked at most once for a cancellation: it takes the watch's own one back.
        """
        if not self._fired or self._task is None:
            return False
        return self._task.uncancel() <= self._cancelling

    def over(self) -> None:
        """The wait is over."""
        self._task = None

    @property
    def too_long(self) -> bool:
        """Whether the stream as a whole is over its time, silent or not."""
        return self._loop.time() >= self._end

    def close(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        due = min(self._since + self._idle_s, self._end)
        if self._task is None:
            # the consumer is busy; the next read starts its own wait
            due = now + min(self._idle_s, 1.0)
        elif now >= due:
            self._fired = True
            self._task.cancel()
            return
        self._timer = self._loop.call_at(due, self._look)
