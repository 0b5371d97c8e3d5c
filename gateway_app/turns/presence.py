"""Each process tells, every few seconds, that it lives and what its agent cache holds.

By the database, so that it works without Redis. The same statement brings an operator's order.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from django.db import DatabaseError

from gateway_app.agent_cache import AgentCache
from gateway_app.config import GatewayConfig
from gateway_app.database_threads import DatabaseLanes
from gateway_app.services.presence import PresenceReport, end_presence, renew_presence

logger: Final = logging.getLogger(__name__)


class PresenceBeat:
    """The row of one process: one statement a beat. It tells what the first of its caches holds."""

    def __init__(
        self,
        lanes: DatabaseLanes,
        caches: Sequence[AgentCache],
        config: GatewayConfig,
        owner: str,
    ) -> None:
        self._lanes, self._caches, self._config, self._owner = lanes, caches, config, owner
        self._evict_done = self._evicted = 0
        self._told = False

    async def run(self) -> None:
        """Tells for ever; a database that is away is waited for."""
        while True:
            await asyncio.sleep(self._config.presence_s)
            try:
                await self.tell()
            except DatabaseError:
                logger.warning("A process could not tell that it lives")

    async def tell(self) -> None:
        """The row says what is so now, and an order to evict that stood there is obeyed."""
        asked = await self._lanes.write(renew_presence, self._report())
        self._told = True
        if asked > self._evict_done:
            self._evicted = await asyncio.to_thread(self._evict_idle)
            self._evict_done = asked
            await self._lanes.write(renew_presence, self._report())

    def _evict_idle(self) -> int:
        return sum(cache.evict_idle() for cache in self._caches)

    async def aclose(self) -> None:
        """The row is gone; without a database it expires."""
        if self._told:
            with suppress(DatabaseError):
                await self._lanes.write(end_presence, self._owner)

    def _report(self) -> PresenceReport:
        census = self._caches[0].census(self._config.presence_baselines)
        return PresenceReport(
            owner=self._owner,
            cached_agents=census.agents,
            cached_agents_limit=self._config.cache_entries,
            cached_bytes=census.size_bytes,
            baselines=census.baselines,
            evict_done=self._evict_done,
            evicted=self._evicted,
        )
