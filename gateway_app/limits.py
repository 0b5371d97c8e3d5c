"""How much one person, or one address, may ask of this process at a time."""

from collections import Counter
from collections.abc import Callable, Hashable
from ipaddress import ip_address
from math import ceil
from time import monotonic
from typing import Final

from django.conf import settings

from gateway_app.config import GatewayConfig

_MANY: Final = 10_000


class Meter:
    """So many a second for each key, and so many at once after a rest."""

    def __init__(self, per_s: float, burst: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._kept: dict[Hashable, tuple[float, float]] = {}

    def take(self, key: Hashable) -> int:
        """Milliseconds until `key` may have one; 0: it has one now."""
        now = self._clock()
        left, at = self._kept.get(key, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._per_s)
        if left < 1:
            self._kept[key] = (left, now)
            return ceil((1 - left) / self._per_s * 1000)
        self._kept[key] = (left - 1, now)
        if len(self._kept) > _MANY:
            self._forget(now)
        return 0

    def _forget(self, now: float) -> None:
        """Whoever has rested long enough is like a stranger."""
        rested_s = self._burst / self._per_s
        self._kept = {key: kept for key, kept in self._kept.items() if now - kept[1] < rested_s}


class Limits:
    """The limits of one process. A loopback address is a proxy or its owner: it has none."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._commands = Meter(config.commands_per_s, config.commands_burst)
        self._sends = Meter(config.sends_per_s, config.sends_burst)
        self._connects = Meter(config.connects_per_s, config.connects_burst)
        self._sockets: Counter[Hashable] = Counter()

    def knock(self, address: str) -> bool:
        """Whether somebody from there may try to come in now."""
        return is_loopback(address) or self._connects.take(address) == 0

    def enter(self, user_id: int, address: str) -> bool:
        """One more socket of this person, from there, if there is room; `leave` gives it back."""
        config = self._config
        crowded = not is_loopback(address) and self._sockets[address] >= config.address_sockets
        if crowded or self._sockets[user_id] >= config.user_sockets:
            return False
        self._sockets.update([user_id, address])
        return True

    def leave(self, user_id: int, address: str) -> None:
        self._sockets.subtract([user_id, address])
        for key in (user_id, address):
            if self._sockets[key] <= 0:
                del self._sockets[key]

    def command(self, user_id: int, *, sends: bool) -> int:
        """Milliseconds until this person may give a command, or one that starts a turn; 0: now."""
        return self._commands.take(user_id) or (self.start(user_id) if sends else 0)

    def start(self, user_id: int) -> int:
        """Milliseconds until this person may make a session or a turn; 0: now."""
        return self._sends.take(user_id)


def client_address(peer: str, forwarded: str | None) -> str:
    """Where a request comes from: what our own proxy saw, if there is one; "" if nobody knows.

    `forwarded`: X-Forwarded-For. A proxy is trusted as its X-Forwarded-Proto is; it puts the
    address it saw last.
    """
    if settings.SECURE_PROXY_SSL_HEADER and forwarded:
        return forwarded.split(",")[-1].strip()
    return peer


def is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:  # a Unix socket has none
        return not address
