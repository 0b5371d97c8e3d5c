"""The load: one scenario against one target, in a process of its own; prints its figures as JSON.

`python -m bench.load '{"scenario": "burst", "target": "relay", "url": ..., "pid": ...}'`. CPU is
that of the measured process (`pid`), all its threads, in the measured part only.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import aiohttp

from bench.clients import Client, DirectClient, HermesClient, RelayClient, Stopwatch, Turn
from gateway_app.serving.open_files import raise_limit

TOKENS_A_SECOND = 83
PACED = "d12"


def cpu_s(pid: int) -> float:
    """CPU seconds of a whole process, by the kernel's clock of that process."""
    return time.clock_gettime((~pid << 3) | 2)


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


class Load:
    """One target, and what the scenarios need of it."""

    def __init__(self, http: aiohttp.ClientSession, order: dict[str, Any]) -> None:
        self.http, self.order, self.pid = http, order, order["pid"]
        self.count = order.get("count", 1)
        self.seconds = order.get("seconds", 1)
        self._tokens = cycle(order["tokens"])

    def client(self, url: str | None = None) -> Client:
        target, url = self.order["target"], url or self.order["url"]
        if target == "hermes":
            return HermesClient(self.http, url, next(self._tokens))
        return (DirectClient if target == "direct" else RelayClient)(self.http, url)

    async def opened(self, count: int, model: str, *, warm: bool = True) -> list[Client]:
        """Clients in conversations that have had their first turn."""
        clients = [self.client() for _ in range(count)]

        async def open_one(client: Client) -> None:
            await client.open(model)
            if warm:
                await client.turn()

        for start in range(0, count, 10):
            await asyncio.gather(*map(open_one, clients[start : start + 10]))
        return clients

    async def close(self, clients: list[Client]) -> None:
        for client in clients:
            await client.close()

    async def single(self) -> dict[str, Any]:
        """Turns one after another, four in a conversation; the first one apart."""
        first: list[Turn] = []
        later: list[Turn] = []
        used = 0.0
        for _ in range(self.count):
            (client,) = await self.opened(1, "t200", warm=False)
            first.append(await client.turn())
            before = cpu_s(self.pid)
            later += [await client.turn() for _ in range(3)]
            used += cpu_s(self.pid) - before
            await client.close()
        return figures(later, used) | {"first_ttft_ms": [turn.ttft_ms for turn in first]}

    async def crowd(self) -> dict[str, Any]:
        """50 clients: their turns begin together, several times; then each without a pause."""
        clients = await self.opened(50, "t200")
        burst: list[Turn] = []
        before = cpu_s(self.pid)
        for _ in range(self.count):
            burst += await asyncio.gather(*(client.turn() for client in clients))
        middle, began, turns = cpu_s(self.pid), time.perf_counter(), list[Turn]()

        async def work(client: Client) -> None:
            while time.perf_counter() < began + self.seconds:
                turns.append(await client.turn())

        await asyncio.gather(*map(work, clients))
        took, used = time.perf_counter() - began, cpu_s(self.pid) - middle
        await self.close(clients)
        tokens_s = sum(turn.tokens for turn in turns) / took
        return {
            "burst": figures(burst, middle - before),
            "saturated": figures(turns, used) | {"tokens_s": tokens_s},
        }

    async def beside(self) -> dict[str, Any]:
        """Turns one after another while 10 others stream at 83 tokens a second."""
        tokens = round(TOKENS_A_SECOND * (self.seconds + 1))
        streaming = await self.opened(10, f"t{tokens}-{PACED}", warm=False)
        (client,) = await self.opened(1, "t200")
        streams = [asyncio.create_task(other.turn()) for other in streaming]
        await asyncio.sleep(0.5)
        until, turns = time.perf_counter() + self.seconds, []
        while time.perf_counter() < until:
            turns.append(await client.turn())
            await asyncio.sleep(0.02)
        await asyncio.gather(*streams)
        await self.close([client, *streaming])
        return figures(turns, 0)

    async def paced(self) -> dict[str, Any]:
        """Many streams at 83 tokens a second, begun within two; measured while all of them run."""
        tokens = round(TOKENS_A_SECOND * (self.seconds + 2))
        clients = await self.opened(self.count, f"t{tokens}-{PACED}", warm=False)
        streams = []
        for client in clients:
            streams.append(asyncio.create_task(client.turn()))
            await asyncio.sleep(2 / self.count)
        before, began = cpu_s(self.pid), time.perf_counter()
        await asyncio.sleep(self.seconds - 1)
        ended = time.perf_counter()
        core = (cpu_s(self.pid) - before) / (ended - began)
        turns = await asyncio.gather(*streams)
        await self.close(clients)
        gaps = [
            (later - earlier) * 1000
            for turn in turns
            for earlier, later in pairwise(turn.contents)
            if began < later < ended
        ]
        return figures(turns, 0) | {"core": core, "gaps_ms": gaps}

    async def idle(self) -> dict[str, Any]:
        """What one more socket, greeted and silent, keeps in the server's memory."""
        if (files := raise_limit()) < self.count + 100:
            raise SystemExit(f"{files} files may be open here; run `ulimit -n {2 * self.count}`.")
        idle = [HermesClient(self.http, self.order["url"], next(self._tokens))
                for _ in range(self.count)]  # fmt: skip
        warm = self.count // 4
        for client in idle[:warm]:
            await client.connect()
        before = rss_bytes(self.pid)
        for client in idle[warm:]:
            await client.connect()
        grown = rss_bytes(self.pid) - before
        used = cpu_s(self.pid)
        await asyncio.sleep(2)
        core = (cpu_s(self.pid) - used) / 2
        await asyncio.gather(*(client.close() for client in idle))
        return {"socket_bytes": grown / (self.count - warm), "core": core}

    async def remote(self) -> dict[str, Any]:
        """Turns of one process, watched through another one; when each event arrived there."""
        token = next(self._tokens)
        here, there = (
            HermesClient(self.http, url, token)
            for url in (self.order["url"], self.order["other_url"])
        )
        await here.open("t60-d12")
        await there.connect()
        await there.watch(here.session_id)
        seen = []
        for _ in range(self.count):
            turn = asyncio.create_task(here.turn())
            seen += (await there.answer(Stopwatch())).arrivals
            await turn
        await self.close([here, there])
        return {"session_id": here.session_id, "arrivals": seen}


def figures(turns: list[Turn], used_s: float) -> dict[str, Any]:
    tokens = sum(turn.tokens for turn in turns)
    return {
        "turns": len(turns),
        "tokens": tokens,
        "ttft_ms": [turn.ttft_ms for turn in turns],
        "total_ms": [turn.total_ms for turn in turns],
        "cpu_turn_ms": used_s * 1000 / len(turns),
        "cpu_token_us": used_s * 1e6 / tokens,
    }


async def main(order: dict[str, Any]) -> dict[str, Any]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        load = Load(http, order)
        scenario: Callable[[], Any] = getattr(load, order["scenario"])
        gc.freeze()
        return await scenario()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
