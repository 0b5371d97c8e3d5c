"""One port that several processes serve: each has a socket of its own, the kernel deals out."""

import socket
from argparse import ArgumentTypeError
from typing import Final

BACKLOG: Final = 1024


class PortTaken(Exception):
    """The address cannot be served; one sentence says why and what to do."""

    def __init__(self, address: str, port: int, reason: str | None) -> None:
        super().__init__(
            f"{address}:{port} cannot be served: {reason}. Choose another --host or --port."
        )


def port_number(text: str) -> int:
    """An option's port; 0 lets the system choose. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65_535:
        raise ArgumentTypeError(f"{text!r} is no port. Choose a number from 0 to 65535.")
    return int(text)


def _bound(address: str, port: int, *, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address, port))
    except OSError as exc:
        bound.close()
        raise PortTaken(address, port, exc.strerror) from exc
    return bound


def reserve(address: str, port: int) -> socket.socket:
    """The port is kept for a group of workers; port 0 takes any free one. Raises PortTaken.

    The socket does not listen, so the kernel deals nothing to it. Another group on the port would
    share it silently: one without SO_REUSEPORT finds out first.
    """
    _bound(address, port, shared=False).close()
    return _bound(address, port, shared=True)


def share(address: str, port: int) -> socket.socket:
    """A listening socket on a reserved port. Raises PortTaken."""
    listener = _bound(address, port, shared=True)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener
