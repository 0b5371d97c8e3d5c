"""The owner's side of the embedded model: one child that runs as long as its owner does."""

import asyncio
import logging
import os
import select
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway_app.local_model.packages import LocalModelError, model_file
from gateway_app.local_model.running import listen, url_of
from sessions_app.sentences import Sentence, say

PROJECT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 30.0
"""How long somebody who wants an answer waits for a child that starts (usually 1-2 s)."""
STOP_S: Final = 5.0
CHECK_S: Final = 15.0
"""How often the child's health is asked for, and how long it may take to answer."""
MISSES: Final = 3
"""So many silent checks in a row end a child."""
ASKED_EVERY_S: Final = 0.2
BACKOFF_S: Final = 0.5
MAX_BACKOFF_S: Final = 30.0
STEADY_S: Final = 60.0
"""A child that lived so long has not failed at start: the pauses begin anew."""

logger = logging.getLogger(__name__)


class LocalModelChild:
    """Keeps one model server running, from `start` to `close`; a thread of its own sees to it.

    The listening socket is the owner's: the address is known at once and stays when the child is
    replaced, and what connects meanwhile waits. The child ends with its owner, however that ends,
    since it reads the stdin that only the owner's life keeps open.
    """

    def __init__(self, *, when_asked: bool = False) -> None:
        """`when_asked`: the first child waits for the first connection."""
        self._when_asked = when_asked
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._listener: socket.socket | None = None
        self._keeper: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._ready: Future[str] = Future()

    @property
    def pid(self) -> int | None:
        """The child's process id; None between two children."""
        child = self._child
        return None if child is None else child.pid

    def start(self) -> str:
        """The child is being started, once; its URL. Does not wait for the model.

        Raises LocalModelError if packages are missing.
        """
        with self._lock:
            if self._closing.is_set():
                raise LocalModelError(say("The local model is being stopped."))
            if self._listener is None:
                model_file()
                self._listener = listen("127.0.0.1", 0)
                self._keeper = threading.Thread(
                    target=self._keep, args=(self._listener,), name="local-model", daemon=True
                )
                self._keeper.start()
            return url_of(self._listener)

    async def url(self) -> str:
        """The URL of a child that answers, started if need be. Raises LocalModelError."""
        self.start()
        try:
            async with asyncio.timeout(START_S):
                return await asyncio.shield(asyncio.wrap_future(self._ready))
        except TimeoutError as exc:
            raise LocalModelError(say("The local model takes too long to start.")) from exc

    def wait(self, timeout_s: float = START_S) -> str:
        """As `url`, for callers without an event loop."""
        self.start()
        try:
            return self._ready.result(timeout_s)
        except TimeoutError as exc:
            raise LocalModelError(say("The local model takes too long to start.")) from exc

    def close(self) -> None:
        """The child has ended and the address is free. Idempotent."""
        with self._lock:
            self._closing.set()
            child, keeper = self._child, self._keeper
            if child is not None:
                child.terminate()
        if keeper is not None:
            keeper.join(STOP_S)
            if keeper.is_alive() and child is not None:
                child.kill()
            keeper.join()
        if self._listener is not None:
            self._listener.close()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def _keep(self, listener: socket.socket) -> None:
        """The keeper thread: one child after another, with pauses that grow while they fail."""
        pause_s = BACKOFF_S
        while self._when_asked and not self._closing.is_set():
            if select.select([listener], [], [], ASKED_EVERY_S)[0]:
                break
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                self._run_one(listener)
            except OSError:
                logger.exception("The local model cannot be started")
            self._replace_ready(say("The local model could not be started."))
            if time.monotonic() - began >= STEADY_S:
                pause_s = BACKOFF_S
            self._closing.wait(pause_s)
            pause_s = min(pause_s * 2, MAX_BACKOFF_S)
        self._replace_ready(say("The local model has been stopped."))

    def _run_one(self, listener: socket.socket) -> None:
        """One child's life. Raises OSError if it cannot begin."""
        with self._lock:
            if self._closing.is_set():
                return
            child = self._child = _spawn(listener)
        with child:
            url = url_of(listener)
            assert child.stdout is not None
            if child.stdout.readline():
                self._ready.set_result(url)
            _watch(child, child.stdout.fileno(), url)
            with self._lock:
                self._child = None
        if not self._closing.is_set():
            logger.warning("The local model ended", extra={"returncode": child.returncode})

    def _replace_ready(self, why: Sentence) -> None:
        """Who waits is told why in vain; whoever comes later waits for the next child."""
        with self._lock:
            former, self._ready = self._ready, Future()
        if not former.done():
            former.set_exception(LocalModelError(why))


def _spawn(listener: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gateway_app.local_model", str(listener.fileno())],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[listener.fileno()],
        # Ctrl-C in the owner's terminal is for the owner: its turns may still be running
        start_new_session=True,
    )


def _watch(child: subprocess.Popen[bytes], stdout: int, url: str) -> None:
    """Returns when the child has ended, which ends its stdout; a silent one is killed."""
    poll = select.poll()
    poll.register(stdout, select.POLLIN)
    misses = 0
    while misses < MISSES:
        if not poll.poll(CHECK_S * 1000):
            misses = 0 if _healthy(url) else misses + 1
        elif not os.read(stdout, 4096):
            return
    child.kill()


def _healthy(url: str) -> bool:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=CHECK_S)
    with closing(connection):
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
