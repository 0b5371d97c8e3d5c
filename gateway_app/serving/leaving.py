"""The end of a process that has nothing left to do."""

import logging
import os
import threading
from typing import Final

from gateway_app.host import GatewayHost

logger: Final = logging.getLogger(__name__)

_THREADS_S: Final = 5.0
"""Python waits for threads for ever, and a tool of a foreign app may hang in one."""
_CLOSING_S: Final = 15.0
"""What is closed at the end waits for others: the database, Redis, a provider."""


async def close_and_leave(gateway: GatewayHost, code: int = 0) -> None:
    """The gateway is closed. The process ends soon with `code`, whatever does not end by itself."""
    _leave_within(_CLOSING_S, code)
    await gateway.aclose()
    _leave_within(_THREADS_S, code)


def _leave_within(seconds: float, code: int) -> None:
    timer = threading.Timer(seconds, _leave, [code])
    timer.daemon = True
    timer.start()


def _leave(code: int) -> None:
    logger.warning("Something did not end by itself; the process ends without it")
    os._exit(code)
