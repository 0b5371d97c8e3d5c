"""A process that runs turns and serves nothing: `manage.py runworker turns`."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from gateway_app.config import gateway_config
from gateway_app.host import GatewayHost, set_host
from gateway_app.serving.leaving import close_and_leave, limit_drain, listen
from gateway_app.serving.loaded import keep_what_is_loaded

logger: Final = logging.getLogger(__name__)


async def run_turns(tell: Callable[[str], None]) -> str | None:
    """Takes turns up, whoever accepted them, until SIGTERM or SIGINT; then drains.

    Returns why it never ran any, in one sentence, or None.
    """
    gateway = GatewayHost(replace(gateway_config(), turns="inline"))
    set_host(gateway)
    told, loop = asyncio.Event(), asyncio.get_running_loop()

    def begin_to_end() -> None:
        if not told.is_set():
            told.set()
            tell(f"Stopping: running answers get up to {gateway.config.drain_s:g} s.")
            limit_drain(gateway.config.drain_s)

    def hear() -> None:
        with suppress(RuntimeError):  # the loop has ended, and so will the process
            loop.call_soon_threadsafe(begin_to_end)

    listen(hear)
    try:
        await gateway.start()
    except Exception as exc:  # whatever it was: no turn is taken up without the gateway
        logger.exception("The gateway did not start")
        await close_and_leave(gateway, 1)
        return f"The gateway did not start: {exc}"
    try:
        keep_what_is_loaded()
        if not told.is_set():
            tell("Turns run here.")
        await told.wait()
        await gateway.drain()
    finally:
        await close_and_leave(gateway)
    return None
