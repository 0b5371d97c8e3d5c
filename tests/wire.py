"""A TCP wire between a client and a server that a test can cut, silence, slow down and mend.

If the server is PostgreSQL, it can lose what a commit answers, too.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Final, Self

_CHUNK: Final = 65_536
_PATIENCE_S: Final = 60


class Wire:
    """Listens on its own `port` and passes bytes on; any thread or loop may call it."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._flowing = threading.Event()
        self._flowing.set()
        self._changed = threading.Condition()
        self._sockets: set[socket.socket] = set()
        self._refusing = False
        self._doomed: bytes | None = None
        self.lost = threading.Event()
        self.taken = 0
        """Connections so far, refused ones left out."""
        self.delay_s = 0.0
        """How long every piece of bytes is on its way, in each direction."""
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # close alone leaves `accept` waiting
        self._listener.close()
        self.cut()
        self._flowing.set()

    def drop(self) -> None:
        """Every connection breaks now; new ones are welcome."""
        with self._changed:
            sockets, self._sockets = self._sockets, set()
        for one in sockets:
            _close(one)

    def cut(self) -> None:
        """Every connection breaks now, and new ones are refused until `mend`."""
        with self._changed:
            self._refusing = True
        self.drop()

    def silence(self) -> None:
        """Nothing is closed and nothing passes any more: the far end is a black hole."""
        self._flowing.clear()

    def mend(self) -> None:
        """Everything passes again, at once."""
        self.delay_s = 0.0
        with self._changed:
            self._refusing = False
        self._flowing.set()

    def lead_to(self, port: int) -> None:
        """New connections go to another server, as after a deploy."""
        self._target = (self._target[0], port)

    def lose_commit_with(self, words: bytes) -> None:
        """The next transaction that sends `words` is committed, and its connection breaks before
        anybody is told; then `lost` is set."""
        self.lost.clear()
        self._doomed = words

    def _heard(self, line: "_Line", chunk: bytes) -> bool:
        """What a client says is always passed on."""
        if self._doomed is not None and self._doomed in chunk:
            line.doomed, self._doomed = True, None
        line.committing = line.doomed and b"COMMIT" in chunk
        return True

    def _answered(self, line: "_Line", _: bytes) -> bool:
        """Whether it is passed on; what a doomed commit answers is not."""
        if line.committing:
            self.lost.set()
        return not line.committing

    def wait_taken(self, count: int) -> None:
        """Returns once so many connections have been taken."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.taken >= count, _PATIENCE_S):
                raise TimeoutError(f"{self.taken} connections")

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        with self._changed:
            if self._refusing:
                _close(near)
                return
            self.taken += 1
            self._sockets.add(near)
            self._changed.notify_all()
        try:
            far = socket.create_connection(self._target)
        except OSError:
            _close(near)
            return
        with self._changed:
            if near in self._sockets:
                self._sockets.add(far)
            else:
                _close(far)
        line = _Line()
        back = (far, near, partial(self._answered, line))
        threading.Thread(target=self._pass, args=back, daemon=True).start()
        self._pass(near, far, partial(self._heard, line))

    def _pass(
        self, one: socket.socket, other: socket.socket, goes: Callable[[bytes], bool]
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := one.recv(_CHUNK):
                self._flowing.wait()
                if self.delay_s:
                    threading.Event().wait(self.delay_s)
                if not goes(chunk):
                    break
                other.sendall(chunk)
        _close(one)
        _close(other)
        with self._changed:
            self._sockets -= {one, other}


@dataclass
class _Line:
    """One connection: whether it sent the words, and whether it commits them now."""

    doomed: bool = False
    committing: bool = False


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
