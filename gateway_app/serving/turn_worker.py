"""A process that runs turns and serves nothing: `manage.py runworker turns`."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace

from gateway_app.config import gateway_config
from gateway_app.host import GatewayHost, set_host
from gateway_app.serving.leaving import close_and_leave
from gateway_app.serving.loaded import keep_what_is_loaded


async def run_turns(tell: Callable[[str], None]) -> None:
    """Takes turns up, whoever accepted them, until SIGTERM or SIGINT; then drains."""
    gateway = GatewayHost(replace(gateway_config(), turns="inline"))
    set_host(gateway)
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await gateway.start()
    keep_what_is_loaded()
    try:
        tell("Turns run here.")
        await stop.wait()
        tell(f"Stopping: running answers get up to {gateway.config.drain_s:g} s.")
        await gateway.drain()
    finally:
        await close_and_leave(gateway)
