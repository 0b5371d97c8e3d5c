"""`serve --workers N`: the process that owns the port, the locks and the workers.

A worker is `python -m gateway_app.serving`. It says `ready`, or why it cannot serve, on its stdout,
and ends when its stdin does: with its owner, however that ends.
"""

import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gateway_app import group_metrics
from gateway_app.serving.leaving import deafen, listen
from gateway_app.serving.port import PortTaken, reserve

PROJECT: Final = Path(__file__).resolve().parents[2]
READY: Final = "ready"
BACKOFF_S: Final = 0.5
MAX_BACKOFF_S: Final = 30.0
STEADY_S: Final = 60.0
"""A worker that lived so long has not failed at start: the pauses begin anew."""
LEAVING_S: Final = 15.0
"""Beyond the grace of running answers, a worker may need this long to end."""

logger = logging.getLogger(__name__)


class WorkerGroup:
    """So many workers on one port, from `run` until SIGTERM or SIGINT; a dead one is replaced.

    `keep` are descriptors of locks that hold as long as any process of the group lives.
    """

    def __init__(
        self,
        *,
        address: str,
        port: int,
        count: int,
        drain_s: float,
        local_url: str | None,
        keep: Sequence[int] = (),
    ) -> None:
        self._address, self._port, self._count = address, port, count
        self._drain_s, self._local_url, self._keep = drain_s, local_url, tuple(keep)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._children: dict[int, subprocess.Popen[str]] = {}
        self._ready: set[int] = set()
        self._failure: str | None = None
        self._announced = False
        self._told = False

    def run(self, announce: Callable[[int], None], say: Callable[[str], None]) -> str | None:
        """Returns after the drain; why it never served, in one sentence, or None."""
        try:
            reserved = reserve(self._address, self._port)
        except PortTaken as exc:
            return str(exc)
        folder = tempfile.TemporaryDirectory(prefix="hermes-metrics-")
        with reserved, folder as metrics:
            self._metrics = Path(metrics)
            self._port = reserved.getsockname()[1]
            listen(self._hear)
            keepers = [
                threading.Thread(target=self._keep_one, args=(place,), name=f"worker-{place}")
                for place in range(self._count)
            ]
            for keeper in keepers:
                keeper.start()
            self._serve(announce, say)
            self._end(keepers)
            deafen()
        return self._failure

    def _serve(self, announce: Callable[[int], None], say: Callable[[str], None]) -> None:
        """Waits in short turns: what a signal left is seen between them."""
        while not self._stopping.wait(0.2):
            if self._told:
                self._stopping.set()
            elif not self._announced and len(self._ready) == self._count:
                self._announced = True
                announce(self._port)
        if self._failure is None:
            say(f"Stopping: running answers get up to {self._drain_s:g} s.")

    def _hear(self) -> None:
        """No more: a signal may come while this very thread has the lock of an Event."""
        self._told = True

    def _end(self, keepers: Sequence[threading.Thread]) -> None:
        """Every worker drained, or was killed when it took too long."""
        until = time.monotonic() + self._drain_s + LEAVING_S
        with self._changed:
            for child in self._children.values():
                child.terminate()
        for keeper in keepers:
            keeper.join(max(0.0, until - time.monotonic()))
        with self._changed:
            for child in self._children.values():
                logger.error("A worker did not end in time", extra={"pid": child.pid})
                child.kill()
        for keeper in keepers:
            keeper.join()

    def _keep_one(self, place: int) -> None:
        """A keeper thread: one worker after another, with pauses that grow while they fail."""
        pause_s = BACKOFF_S
        while not self._stopping.is_set():
            began = time.monotonic()
            code = self._run_one(place)
            if self._stopping.is_set():
                return
            logger.error("A worker ended; another takes its place", extra={"returncode": code})
            if time.monotonic() - began >= STEADY_S:
                pause_s = BACKOFF_S
            self._stopping.wait(pause_s)
            pause_s = min(pause_s * 2, MAX_BACKOFF_S)

    def _run_one(self, place: int) -> int:
        """One worker's life; its exit code. A group that never served gives up with its first."""
        with self._changed:
            if self._stopping.is_set():
                return 0
            child = self._children[place] = self._spawn(place)
        with child:
            assert child.stdout is not None
            said = child.stdout.readline().strip()
            if said == READY:
                self._ready.add(place)
            elif not self._announced and not self._stopping.is_set():
                self._failure = said or "A worker ended before it served; its log says why."
                self._stopping.set()
            code = child.wait()
        with self._changed:
            del self._children[place]
        group_metrics.leave(self._metrics, place)
        return code

    def _spawn(self, place: int) -> subprocess.Popen[str]:
        where = [
            "--host", self._address, "--port", str(self._port), "--place", str(place),
            "--metrics", str(self._metrics),
        ]  # fmt: skip
        local = ["--local-url", self._local_url] if self._local_url else []
        return subprocess.Popen(
            [sys.executable, "-m", "gateway_app.serving", *where, *local],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=self._keep,
            # Ctrl-C in the owner's terminal is for the owner, who tells its workers
            start_new_session=True,
        )
