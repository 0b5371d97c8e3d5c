"""Limits that count in all processes which share a Redis; docs/decisions/0009 says why like this.

What was taken is told a few times a second, all of it in one call, and each process hears what is
left: no command waits for Redis. A socket that opens asks, and is answered for all processes. Where
Redis does not answer, a process counts alone.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

logger: Final = logging.getLogger(__name__)

_PREFIX: Final = "hermes:limits:"
_PROCESSES: Final = f"{_PREFIX}processes"
_PATIENCE_S: Final = 0.5
_REST_S: Final = 5
"""So long nobody asks a Redis that did not answer: who opens a socket would wait for it."""

_SETTLE: Final = """
local time = redis.call('TIME')
local now, left = time[1] + time[2] / 1e6, {}
for i, key in ipairs(KEYS) do
  local used, per_s, burst = unpack(ARGV, 3 * i - 2, 3 * i)
  local rest, kept = tonumber(burst), redis.call('GET', key)
  if kept then
    local was, at = string.match(kept, '^([%d.-]+) ([%d.]+)$')
    if was then rest = math.min(rest, was + math.max(0, now - at) * per_s) end
  end
  rest = math.max(-burst, rest - used)
  local full_ms = math.ceil((burst - rest) / per_s * 1000)
  redis.call('SET', key, string.format('%.3f %.6f', rest, now), 'PX', full_ms + 1)
  left[i] = string.format('%.3f', rest)
end
return left
"""
"""Buckets of KEYS after what was taken of them; ARGV: taken, rate a second, burst of each. A bucket
that is full again is forgotten. A clock that was set back takes nothing away."""

_ENTER: Final = """
local time, own = redis.call('TIME'), ARGV[1]
local now = time[1] + time[2] / 1e6
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2] / 1000)
redis.call('ZADD', KEYS[1], now, own)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local all = redis.call('ZRANGE', KEYS[1], 0, -1)
for i = 4, #ARGV, 3 do
  local sum = tonumber(ARGV[i + 1])
  for _, one in ipairs(all) do
    if one ~= own then sum = sum + (redis.call('HGET', ARGV[3] .. one, ARGV[i]) or 0) end
  end
  if sum > tonumber(ARGV[i + 2]) then return 0 end
end
for i = 4, #ARGV, 3 do redis.call('HSET', ARGV[3] .. own, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', ARGV[3] .. own, ARGV[2])
return 1
"""
"""1: there is room in all processes. ARGV: process, its life in ms, prefix; then of whatever is
bounded: key, own count with the new one, limit."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a process took of one bucket since it told last."""

    key: str
    number: int
    per_s: float
    burst: int


class SharedLimits:
    """One process's share in the counts of all. Nothing here raises.

    `owner` is the process's name. `forget_s` after its last word it is taken for dead, and its
    sockets count no more.
    """

    def __init__(self, url: str, owner: str, *, forget_s: float) -> None:
        self._redis = Redis.from_url(
            url, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
        )  # fmt: skip
        self._settle = self._redis.register_script(_SETTLE)
        self._enter = self._redis.register_script(_ENTER)
        self._owner, self._forget_ms = owner, round(forget_s * 1000)
        self._own = f"{_PREFIX}sockets:{owner}"
        self._rest_until = 0.0
        self._away = False

    async def settle(self, taken: Sequence[Taken]) -> list[float] | None:
        """What is left of each bucket, in all processes; below 0: too much was taken."""
        keys = [_PREFIX + one.key for one in taken]
        numbers = [x for one in taken for x in (one.number, one.per_s, one.burst)]
        left = await self._ask(self._settle(keys=keys, args=numbers))
        return None if left is None else [float(one) for one in left]

    async def enter(self, counts: Mapping[str, tuple[int, int]]) -> bool | None:
        """Whether one more socket fits. `counts`: of each key this process's, with it, and a limit.

        None: nobody knows.
        """
        args: list[Any] = [self._owner, self._forget_ms, f"{_PREFIX}sockets:"]
        for key, (count, limit) in counts.items():
            args += [key, count, limit]
        found = await self._ask(self._enter(keys=[_PROCESSES], args=args))
        return None if found is None else bool(found)

    async def tell(self, changed: Mapping[str, int], *, anew: bool = False) -> bool:
        """These keys (`anew`: and no others) have so many sockets here; False if Redis is away."""
        gone = [key for key, count in changed.items() if count <= 0]
        there = {key: count for key, count in changed.items() if count > 0}

        async def write() -> bool:
            async with self._redis.pipeline(transaction=True) as pipe:
                if anew:
                    pipe.delete(self._own)
                if gone:
                    pipe.hdel(self._own, *gone)
                if there:
                    pipe.hset(self._own, items=[x for pair in there.items() for x in pair])
                    pipe.pexpire(self._own, self._forget_ms)
                await pipe.execute()
            return True

        return bool(await self._ask(write()))

    async def live(self, keys: int) -> bool:
        """This process lives, and those that do not are forgotten.

        False if Redis is away, or does not know all of its `keys`.
        """

        async def renew() -> bool:
            seconds, micros = await self._redis.time()
            now = seconds + micros / 1e6
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.zremrangebyscore(_PROCESSES, "-inf", now - self._forget_ms / 1000)
                pipe.zadd(_PROCESSES, {self._owner: now})
                pipe.pexpire(_PROCESSES, self._forget_ms)
                pipe.pexpire(self._own, self._forget_ms)
                pipe.hlen(self._own)
                return int((await pipe.execute())[-1]) == keys

        return bool(await self._ask(renew()))

    async def aclose(self) -> None:
        """The process is gone, and said so."""

        async def leave() -> None:
            await self._redis.delete(self._own)
            await self._redis.zrem(_PROCESSES, self._owner)

        await self._ask(leave())
        await self._redis.aclose()

    async def _ask(self, question: Any) -> Any:
        """The answer; None if Redis does not give one, or did not a moment ago."""
        if monotonic() < self._rest_until:
            question.close()
            return None
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await question
        except (OSError, RedisError, TimeoutError):
            if not self._away:
                logger.warning("Redis does not count limits; this process counts alone")
            self._away, self._rest_until = True, monotonic() + _REST_S
            return None
        self._away = False
        return answer
