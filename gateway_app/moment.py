"""What is so at a moment, brought into the metrics: when they are read; in a group each second."""

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from gateway_app import metrics

if TYPE_CHECKING:
    from gateway_app.host import GatewayHost

_EVERY_S: Final = 1


class Moment:
    """The metrics of one gateway that are not counted where they happen."""

    def __init__(self, host: "GatewayHost") -> None:
        self._host = host
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._evictions = 0

    def look(self) -> None:
        """The gauges are what is so now, and what the agent cache counted since is added."""
        host, census = self._host, self._host.cache.census(0)
        metrics.running_runs.set(len(host.runner.live))
        metrics.websockets.set(len(host.connections))
        metrics.cached_agents.set(census.agents)
        metrics.cached_bytes.set(census.size_bytes)
        metrics.draining.set(host.draining)
        for lane, length in host.lanes.waiting().items():
            metrics.database_queue.labels(lane).set(length)
        verdicts, evictions = Counter(host.cache.verdicts.copy()), host.cache.evictions
        for (verdict, reason), count in (verdicts - self._verdicts).items():
            metrics.guard_verdicts.labels(verdict, reason).inc(count)
        metrics.evictions.inc(evictions - self._evictions)
        self._verdicts, self._evictions = verdicts, evictions

    async def look_forever(self) -> None:
        """For other workers of a group, which may be asked and cannot look into this one."""
        while True:
            self.look()
            await asyncio.sleep(_EVERY_S)
