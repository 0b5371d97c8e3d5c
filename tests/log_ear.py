"""Waits for a line of the log: some things are seen nowhere else."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tests.gate import WAIT_S


class LogEar(logging.Handler):
    """Counts the lines that begin with `start`."""

    def __init__(self, start: str) -> None:
        super().__init__()
        self._start = start
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(self._start):
            self._loop.call_soon_threadsafe(self._heard.set)

    async def hears(self, times: int = 1) -> None:
        """Waits until the line was written so many times more."""
        async with asyncio.timeout(WAIT_S):
            for _ in range(times):
                await self._heard.wait()
                self._heard.clear()


@contextmanager
def listening(logger: str, start: str) -> Iterator[LogEar]:
    ear = LogEar(start)
    logging.getLogger(logger).addHandler(ear)
    try:
        yield ear
    finally:
        logging.getLogger(logger).removeHandler(ear)
