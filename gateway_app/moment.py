"""What is so at a moment, brought into the metrics: when they are read; in a group each second."""

import asyncio
from collections import Counter
from typing import Final

from gateway_app import metrics
from gateway_app.agent_cache import AgentCache
from gateway_app.database_threads import DatabaseLanes
from gateway_app.open_sockets import OpenSockets
from gateway_app.turns.runner import TurnRunner

_EVERY_S: Final = 1


class Moment:
    """The metrics of one gateway that are not counted where they happen."""

    def __init__(
        self, runner: TurnRunner, cache: AgentCache, sockets: OpenSockets, lanes: DatabaseLanes
    ) -> None:
        self._runner, self._cache, self._sockets, self._lanes = runner, cache, sockets, lanes
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._evictions = 0

    def look(self) -> None:
        """The gauges are what is so now, and what the agent cache counted since is added."""
        census = self._cache.census(0)
        metrics.running_runs.set(len(self._runner.live))
        metrics.websockets.set(len(self._sockets))
        metrics.cached_agents.set(census.agents)
        metrics.cached_bytes.set(census.size_bytes)
        metrics.draining.set(self._runner.draining)
        for lane, length in self._lanes.waiting().items():
            metrics.database_queue.labels(lane).set(length)
        verdicts, evictions = Counter(self._cache.verdicts.copy()), self._cache.evictions
        for (verdict, reason), count in (verdicts - self._verdicts).items():
            metrics.guard_verdicts.labels(verdict, reason).inc(count)
        metrics.evictions.inc(evictions - self._evictions)
        self._verdicts, self._evictions = verdicts, evictions

    async def look_forever(self) -> None:
        """For other workers of a group, which may be asked and cannot look into this one."""
        while True:
            self.look()
            await asyncio.sleep(_EVERY_S)
