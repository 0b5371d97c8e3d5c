"""Who watches which session, and how far each has been told.

A subscription is live (served from memory as commits happen) or behind (served from the log). It
goes live only when it has sent everything that was ever offered to it, so nothing falls between.
"""

from collections import deque
from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from gateway_app.event_store import LoggedEvents


class Listener(Protocol):
    """A connection's sending side, as its subscriptions see it."""

    def offer(self, subscription: "Subscription", logged: LoggedEvents) -> bool:
        """Takes live frames now if there is room; False: the subscription falls behind."""
        ...

    def wake(self) -> None:
        """Something is behind: read the log when there is room."""
        ...


class Subscription:
    """One socket's view of one session."""

    def __init__(self, session_id: UUID, listener: Listener) -> None:
        self.session_id = session_id
        self.listener = listener
        self.sent = 0
        """The last seq that was sent."""
        self.want = 0
        """The highest seq that is known to exist."""
        self.attached = False
        """False until its snapshot or replay has a starting point."""
        self.unacknowledged: deque[tuple[int, int]] = deque()
        """(seq, bytes) of frames that the client owes an ack for."""

    @property
    def behind(self) -> bool:
        return self.attached and self.sent < self.want

    def start(self, seq: int) -> None:
        """The client is at `seq`; what comes after it is owed."""
        self.sent = seq
        self.want = max(self.want, seq)
        self.attached = True
        self.listener.wake()

    def note(self, seq: int) -> None:
        """The log reaches to `seq`."""
        if seq > self.want:
            self.want = seq
            if self.attached:
                self.listener.wake()

    def offer(self, logged: LoggedEvents) -> None:
        """New events, from memory."""
        live = self.attached and not self.behind and logged.first_seq == self.sent + 1
        self.want = max(self.want, logged.last_seq)
        if live and self.listener.offer(self, logged):
            self.sent = logged.last_seq
        elif self.attached:
            self.listener.wake()


class Hub:
    """The subscriptions of one process. Lives on its event loop."""

    def __init__(self) -> None:
        self._by_session: dict[UUID, set[Subscription]] = {}

    def attach(self, subscription: Subscription) -> None:
        self._by_session.setdefault(subscription.session_id, set()).add(subscription)

    def detach(self, subscription: Subscription) -> None:
        there = self._by_session.get(subscription.session_id)
        if there is not None:
            there.discard(subscription)
            if not there:
                del self._by_session[subscription.session_id]

    def sessions(self) -> list[UUID]:
        """The sessions that somebody watches."""
        return list(self._by_session)

    def publish(self, batches: Iterable[LoggedEvents]) -> None:
        """Committed events reach their subscribers."""
        for logged in batches:
            for subscription in tuple(self._by_session.get(logged.session_id, ())):
                subscription.offer(logged)

    def note(self, session_id: UUID, seq: int) -> None:
        """Another process logged something."""
        for subscription in tuple(self._by_session.get(session_id, ())):
            subscription.note(seq)
