"""The open websockets of a process, also by whose they are."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

from gateway_app.outbox import Outbox


class OpenSocket(Protocol):
    """A socket as the process sees it. Times are monotonic."""

    user_id: int
    credential: Any
    greeted: bool
    opened_at: float
    pinged_at: float
    checked_at: float

    @property
    def outbox(self) -> Outbox: ...

    @property
    def close(self) -> Callable[[int], Awaitable[None]]: ...

    @property
    def tell(self) -> Callable[[str], Awaitable[None]]: ...


class OpenSockets:
    """Lives on the event loop. What it gives is a copy: sockets come and go meanwhile."""

    def __init__(self) -> None:
        self._by_user: dict[int, set[OpenSocket]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[OpenSocket]:
        return iter([one for sockets in self._by_user.values() for one in sockets])

    def of(self, user_id: int) -> list[OpenSocket]:
        """One person's sockets: a look that does not grow with everybody else's."""
        return list(self._by_user.get(user_id, ()))

    def add(self, one: OpenSocket) -> None:
        sockets = self._by_user.setdefault(one.user_id, set())
        self._count += one not in sockets
        sockets.add(one)

    def discard(self, one: OpenSocket) -> None:
        """It is gone; one that never came is none."""
        sockets = self._by_user.get(one.user_id, set())
        if one in sockets:
            sockets.remove(one)
            self._count -= 1
            if not sockets:
                del self._by_user[one.user_id]
