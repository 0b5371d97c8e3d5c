"""A TCP wire between browser and server that a test can cut, silence and mend."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

_CHUNK = 65_536


class Wire:
    """Listens on its own port and passes bytes on. `url` is where the browser finds the server."""

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._refusing = False
        self.delay_s = 0.0
        """How long every piece of bytes is on its way, in each direction."""
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Every connection breaks now, and new ones are refused until `mend`."""
        with self._lock:
            self._refusing = True
            sockets, self._sockets = self._sockets, set()
        for one in sockets:
            _close(one)

    def silence(self) -> None:
        """Nothing is closed and nothing passes any more: the far end is a black hole."""
        self._flowing.clear()

    def mend(self) -> None:
        with self._lock:
            self._refusing = False
        self._flowing.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                refused = self._refusing
            if refused:
                _close(near)
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                _close(near)
                continue
            with self._lock:
                self._sockets |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := one.recv(_CHUNK):
                self._flowing.wait()
                if self.delay_s:
                    threading.Event().wait(self.delay_s)
                other.sendall(chunk)
        _close(one)
        _close(other)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
