"""How much one person, or one address, may ask at a time: of all processes that share a Redis."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from math import ceil
from time import monotonic
from typing import Final

from django.conf import settings

from gateway_app.config import GatewayConfig
from gateway_app.shared_limits import SharedLimits, Taken

_MANY: Final = 10_000
"""Keys of a meter beyond which those that have rested are forgotten."""
_BATCH: Final = 500
"""Buckets settled in one call, so that Redis does nothing else for a few milliseconds at most."""


class Meter:
    """So many a second for each key, and so many at once after a rest.

    `tells`: somebody asks what was `taken`.
    """

    def __init__(
        self,
        name: str,
        per_s: float,
        burst: int,
        *,
        tells: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._name, self._per_s, self._burst = name, per_s, burst
        self._tells, self._clock = tells, clock
        self._kept: dict[str, tuple[float, float]] = {}
        """Key -> (what was left, when)."""
        self._taken: Counter[str] = Counter()

    def take(self, key: str) -> int:
        """Milliseconds until `key` may have one; 0: it has one now."""
        now = self._clock()
        left = self._left(key, now)
        if left < 1:
            self._kept[key] = (left, now)
            return ceil((1 - left) / self._per_s * 1000)
        self._kept[key] = (left - 1, now)
        if self._tells:
            self._taken[key] += 1
        if len(self._kept) > _MANY:
            self._forget(now)
        return 0

    def taken(self) -> list[Taken]:
        """What was taken since this was asked last."""
        taken, self._taken = self._taken, Counter()
        return [
            Taken(f"{self._name}:{key}", number, self._per_s, self._burst)
            for key, number in taken.items()
        ]

    def settle(self, key: str, left: float) -> None:
        """Others took of it too: before what was taken since `taken`, only so much was left."""
        now = self._clock()
        self._kept[key] = (min(self._left(key, now), left - self._taken[key]), now)

    def _left(self, key: str, now: float) -> float:
        left, at = self._kept.get(key, (float(self._burst), now))
        return min(self._burst, left + (now - at) * self._per_s)

    def _forget(self, now: float) -> None:
        """Whoever has rested long enough is like a stranger."""
        rested_s = self._burst / self._per_s
        self._kept = {key: kept for key, kept in self._kept.items() if now - kept[1] < rested_s}


class Limits:
    """What people and addresses may ask. A loopback address is a proxy or its owner: it has none.

    With `shared` it counts in all processes, with one process's count between two ticks of `run`.
    """

    def __init__(self, config: GatewayConfig, shared: SharedLimits | None = None) -> None:
        self._config, self._shared = config, shared
        meter = partial(Meter, tells=shared is not None)
        self._commands = meter("commands", config.commands_per_s, config.commands_burst)
        self._sends = meter("sends", config.sends_per_s, config.sends_burst)
        self._connects = meter("connects", config.connects_per_s, config.connects_burst)
        self._meters = (self._commands, self._sends, self._connects)
        self._sockets: Counter[str] = Counter()
        self._changed: set[str] = set()

    def knock(self, address: str) -> bool:
        """Whether somebody from there may try to come in now."""
        return is_loopback(address) or self._connects.take(address) == 0

    async def enter(self, user_id: int, address: str) -> bool:
        """One more socket of this person, from there, if there is room; `leave` gives it back."""
        bounds = self._bounds(user_id, address)
        if any(self._sockets[key] >= limit for key, limit in bounds.items()):
            return False
        self._sockets.update(bounds.keys())
        if self._shared is None:
            return True
        self._changed |= bounds.keys()
        counts = {key: (self._sockets[key], limit) for key, limit in bounds.items()}
        entered = False
        try:
            entered = await self._shared.enter(counts) is not False
        finally:
            if not entered:
                self.leave(user_id, address)
        return entered

    def leave(self, user_id: int, address: str) -> None:
        for key in self._bounds(user_id, address):
            self._sockets[key] -= 1
            if self._sockets[key] <= 0:
                del self._sockets[key]
            if self._shared is not None:
                self._changed.add(key)

    def command(self, user_id: int, *, sends: bool) -> int:
        """Milliseconds until this person may give a command, or one that starts a turn; 0: now."""
        return self._commands.take(str(user_id)) or (self.start(user_id) if sends else 0)

    def start(self, user_id: int) -> int:
        """Milliseconds until this person may make a session or a turn; 0: now."""
        return self._sends.take(str(user_id))

    async def run(self) -> None:
        """Tells other processes for ever, and hears of them; without Redis there is nobody."""
        if self._shared is None:
            return
        lived_at = 0.0
        while True:
            await asyncio.sleep(self._config.limits_settle_ms / 1000)
            await self.settle()
            if monotonic() - lived_at > self._config.limits_forget_s / 3:
                lived_at = monotonic()
                if not await self._shared.live(len(self._sockets)):
                    await self._shared.tell(self._sockets, anew=True)

    async def settle(self) -> None:
        """One tick: what was taken here is known to all, and what is left of it here."""
        if self._shared is None:
            return
        for meter in self._meters:
            taken = meter.taken()
            for start in range(0, len(taken), _BATCH):
                batch = taken[start : start + _BATCH]
                for one, left in zip(batch, await self._shared.settle(batch) or (), strict=False):
                    meter.settle(one.key.partition(":")[2], left)
        changed, self._changed = self._changed, set()
        if changed and not await self._shared.tell({key: self._sockets[key] for key in changed}):
            self._changed |= changed

    async def aclose(self) -> None:
        if self._shared is not None:
            await self._shared.aclose()

    def _bounds(self, user_id: int, address: str) -> dict[str, int]:
        """Of whom a socket is one more, and how many they may have."""
        bounds = {f"user:{user_id}": self._config.user_sockets}
        if not is_loopback(address):
            bounds[f"address:{address}"] = self._config.address_sockets
        return bounds


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
