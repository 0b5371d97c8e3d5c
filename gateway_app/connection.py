"""One websocket after its handshake: who it is, what it watches, what it may still send."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol
from uuid import UUID

from gateway_app.host import GatewayHost
from gateway_app.outbox import Outbox
from gateway_app.subscriptions import Subscription


class Caller(Protocol):
    """Somebody who gives a command, by whichever door: what commands that need no socket use."""

    @property
    def host(self) -> GatewayHost: ...

    @property
    def user_id(self) -> int: ...

    @property
    def user_name(self) -> str: ...

    def unwatch(self, session_id: UUID) -> None:
        """The session is not sent any more, if it was."""
        ...


@dataclass(eq=False)
class Connection:
    """`tell` sends a frame past the outbox, `close` ends the socket with a close code; `greeted` is
    set by `hello`. Times are monotonic.
    """

    host: GatewayHost
    user_id: int
    user_name: str
    credential: Any
    outbox: Outbox
    tell: Callable[[str], Awaitable[None]]
    close: Callable[[int], Awaitable[None]]
    greeted: bool = False
    opened_at: float = field(default_factory=monotonic)
    pinged_at: float = field(default_factory=monotonic)
    checked_at: float = field(default_factory=monotonic)

    def watch(self, session_id: UUID) -> Subscription:
        """A subscription that is attached to the hub but sends nothing until it is started."""
        self.unwatch(session_id)
        subscription = Subscription(session_id, self.outbox)
        self.outbox.add(subscription)
        self.host.hub.attach(subscription)
        return subscription

    def unwatch(self, session_id: UUID) -> None:
        """The session is not sent any more."""
        if subscription := self.outbox.drop(session_id):
            self.host.hub.detach(subscription)

    def end(self) -> None:
        """The socket is gone: nothing is sent, nothing is watched."""
        for session_id in list(self.outbox.subscriptions):
            self.unwatch(session_id)
