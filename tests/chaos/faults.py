"""What goes wrong, as a random number decides, until the time is over."""

import asyncio
import random
from collections import Counter

from tests.chaos.place import Place


class Faults:
    """`run` breaks things until cancelled; `done` counts them."""

    def __init__(self, place: Place, rng: random.Random) -> None:
        self._place, self._rng = place, rng
        self.done: Counter[str] = Counter()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for work in (self._kill_workers, self._restart_redis, self._spoil_network):
                group.create_task(work())

    async def _pause(self, least_s: float, most_s: float) -> None:
        await asyncio.sleep(self._rng.uniform(least_s, most_s))

    async def _kill_workers(self) -> None:
        while True:
            await self._pause(2, 7)
            if len(alive := self._place.workers()) > 1:
                self._place.kill_worker(self._rng.choice(alive))
                self.done["worker killed"] += 1

    async def _restart_redis(self) -> None:
        while True:
            await self._pause(8, 20)
            self._place.kill_redis()
            try:
                await self._pause(0.1, 2)
            finally:
                self._place.start_redis()
            self.done["redis restarted"] += 1

    async def _spoil_network(self) -> None:
        while True:
            await self._pause(3, 10)
            if self._rng.random() < 0.3:
                self._place.network.drop()
                self.done["database cut"] += 1
                continue
            self._place.network.delay_s = self._rng.choice([0.01, 0.05, 0.2])
            try:
                await self._pause(1, 4)
            finally:
                self._place.network.mend()
            self.done["database slow"] += 1
