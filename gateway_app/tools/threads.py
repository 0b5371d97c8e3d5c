"""Threads for tools that block: few, and none that a stop or the process's end would wait for."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from asgiref.sync import ThreadSensitiveContext
from django.db import connections

P = ParamSpec("P")
R = TypeVar("R")


class ToolThreads:
    """At most `limit` calls at once, each in a thread of its own; half of them of one session.

    A thread cannot be killed: a call that was given up keeps its place until it ends by itself.
    """

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)
        self._own = threading.Semaphore(limit)
        self._share = max(1, limit // 2)
        self._shares: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()
        self._own_shares: WeakValueDictionary[UUID, threading.Semaphore] = WeakValueDictionary()

    async def run_coroutine(
        self, call: Callable[[], Any], session_id: UUID, begun: Callable[[], None]
    ) -> Any:
        """What the coroutine function gives; at most `limit` of them use Django's ORM at once."""
        begun()
        share = self._own_shares.setdefault(session_id, threading.Semaphore(self._share))
        return await OwnThread(share, self._own).run(call)

    async def run(
        self, call: Callable[[], Any], session_id: UUID, begun: Callable[[], None]
    ) -> Any:
        """What the call returned or raised. Cancelled, it is left alone, and told to nobody.

        `begun()` is called when it has a place; without, it will never run.
        """
        share = self._shares.setdefault(session_id, asyncio.Semaphore(self._share))
        await share.acquire()
        try:
            await self._free.acquire()
        except BaseException:
            share.release()
            raise

        def leave() -> None:
            self._free.release()
            share.release()

        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

        def deliver(result: Any, error: BaseException | None) -> None:
            leave()
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

        begun()
        try:
            threading.Thread(target=work, name="hermes-tool", daemon=True).start()
        except RuntimeError:
            leave()
            raise
        result, error = await ended
        if error is not None:
            raise error
        return result


class OwnThread(Executor):
    """What one coroutine does in Django's threads: all of it in one of its own, begun when needed.

    The one that Django shares would stand still for every tool as long as one of them blocks, and
    keeps its connection: with a transaction that a tool left open, or broken.
    """

    def __init__(self, *places: threading.Semaphore) -> None:
        self._places = places
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._begun = False

    async def run(self, call: Callable[[], Any]) -> Any:
        """What the coroutine function gives."""
        try:
            async with ThreadSensitiveContext(executor=self):
                return await call()
        finally:
            self._calls.put(None)

    def submit(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        future: Future[R] = Future()
        self._calls.put(partial(_settle, future, partial(call, *args, **kwargs)))
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._work, name="hermes-tool-orm", daemon=True).start()
        return future

    def _work(self) -> None:
        with ExitStack() as held:
            for place in self._places:
                held.enter_context(place)
            try:
                while (call := self._calls.get()) is not None:
                    call()
            finally:
                connections.close_all()


def _settle(future: "Future[R]", call: Callable[[], R]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as exc:  # noqa: BLE001  whoever awaits the call gets it
        future.set_exception(exc)
