"""A socket's commands that wait for somebody else's server, beside its queue."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from gateway_app.protocol import AnyCommand


class SlowCommands:
    """Answers them one after another, and holds back nothing else. Costs nothing while idle."""

    def __init__(
        self,
        answer: Callable[[AnyCommand], Awaitable[None]],
        report: Callable[["asyncio.Task[None]"], None],
    ) -> None:
        """`report` gets the task when it is over, whatever ended it."""
        self._answer, self._report = answer, report
        self._waiting: deque[AnyCommand] = deque()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many are not answered yet."""
        return len(self._waiting)

    def put(self, command: AnyCommand) -> None:
        self._waiting.append(command)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(self._report)

    def end(self) -> None:
        """The socket is gone: nothing more is answered."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while self._waiting:
            await self._answer(self._waiting[0])
            self._waiting.popleft()
