"""Threads for tools that block: few, and none that a stop or the process's end would wait for."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from django.db import connections


class ToolThreads:
    """At most `limit` calls at once, each in a thread of its own.

    A thread cannot be killed: a call that was given up keeps its place until it ends by itself.
    """

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)

    async def run(self, call: Callable[[], Any]) -> Any:
        """What the call returned or raised. Cancelled, it is left alone, and told to nobody."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

        def deliver(result: Any, error: BaseException | None) -> None:
            self._free.release()
            if not ended.done():
                ended.set_result((result, error))

        def work() -> None:
            result, error = None, None
            try:
                result = call()
            except BaseException as exc:  # noqa: BLE001  whoever awaits the call gets it
                error = exc
            finally:
                connections.close_all()
            if not loop.is_closed():
                loop.call_soon_threadsafe(deliver, result, error)

        try:
            threading.Thread(target=work, name="hermes-tool", daemon=True).start()
        except RuntimeError:
            self._free.release()
            raise
        result, error = await ended
        if error is not None:
            raise error
        return result
