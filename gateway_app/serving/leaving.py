"""The end of a process that has nothing left to do."""

import logging
import os
import threading
from typing import Final

logger: Final = logging.getLogger(__name__)

THREADS_S: Final = 5.0
"""Python waits for threads for ever, and a tool of a foreign app may hang in one."""
CLOSING_S: Final = 15.0
"""What is closed at the end waits for others: the database, Redis, a provider."""


def leave_within(seconds: float, code: int = 0) -> None:
    """The process ends in so many seconds, whatever does not end by itself."""
    timer = threading.Timer(seconds, _leave, [code])
    timer.daemon = True
    timer.start()


def _leave(code: int) -> None:
    logger.warning("Something did not end by itself; the process ends without it")
    os._exit(code)
