"""What one person may ask of all processes together, over a real Redis that may go away."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import redis

from gateway_app import shared_limits
from gateway_app.config import GatewayConfig
from gateway_app.limits import Limits
from gateway_app.shared_limits import SharedLimits
from tests.chaos.place import free_port

pytestmark = pytest.mark.redis

AFAR: Final = "192.0.2.7"
PATIENCE_S: Final = 60


class OwnRedis:
    """A Redis of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self._port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--dir", str(self._folder)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with redis.Redis.from_url(self.url, retry=None) as client:
            while self._process.poll() is None:
                try:
                    client.ping()
                except redis.ConnectionError:
                    continue
                return
        raise AssertionError("no Redis")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def own_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnRedis]:
    """A busy machine is no Redis that is away: that one refuses at once."""
    monkeypatch.setattr(shared_limits, "_PATIENCE_S", PATIENCE_S)
    own = OwnRedis(tmp_path)
    yield own
    own.kill()


def of_process(url: str, **config: Any) -> Limits:
    """The limits of one more process."""
    own = replace(GatewayConfig(), **config)
    shared = SharedLimits(url, f"process-{uuid4()}", forget_s=own.limits_forget_s)
    return Limits(own, shared)


async def until(condition: Callable[[], Any]) -> None:
    """Asks again and again: what others do tells nobody here."""
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_it_takes_from_one_bucket_in_all_processes(own_redis: OwnRedis) -> None:
    slow = {"sends_per_s": 0.001, "sends_burst": 10}
    one, two = (of_process(own_redis.url, **slow) for _ in range(2))
    assert [one.start(7) for _ in range(6)] == [0] * 6
    await one.settle()
    assert two.start(7) == 0
    await two.settle()
    assert [two.start(7) == 0 for _ in range(4)] == [True] * 3 + [False]
    assert two.start(8) == 0, "somebody else's is another matter"
    await two.settle()
    assert one.start(7) == 0, "it has not heard yet"
    await one.settle()
    assert one.start(7) > 1000
    await asyncio.gather(one.aclose(), two.aclose())


@pytest.mark.parametrize("kept", ["3 99999999999.0", "what others wrote"])
async def test_it_refuses_nothing_for_what_a_clock_set_back_or_others_left(
    own_redis: OwnRedis, kept: str
) -> None:
    one, two = (of_process(own_redis.url, sends_per_s=0.001, sends_burst=10) for _ in range(2))
    with redis.Redis.from_url(own_redis.url) as client:
        client.set("hermes:limits:sends:7", kept)
    for process in (one, two):
        assert process.start(7) == 0
        await process.settle()
        assert process.start(7) == 0
        await process.aclose()


async def test_it_bounds_sockets_in_all_processes(own_redis: OwnRedis) -> None:
    one, two = (of_process(own_redis.url, user_sockets=3, address_sockets=4) for _ in range(2))
    assert [await one.enter(7, AFAR) for _ in range(2)] == [True, True]
    assert [await two.enter(7, AFAR) for _ in range(2)] == [True, False]
    assert [await one.enter(8, AFAR), await two.enter(9, AFAR)] == [True, False]
    assert await two.enter(9, "127.0.0.1"), "a proxy has no limit of its own"
    one.leave(7, AFAR)
    await one.settle()
    assert [await two.enter(7, AFAR), await one.enter(7, AFAR)] == [True, False]
    await two.aclose()
    assert await one.enter(7, AFAR), "whoever left and said so counts no more"
    await one.aclose()


async def test_it_forgets_the_sockets_of_a_process_that_died(own_redis: OwnRedis) -> None:
    short = {"user_sockets": 2, "limits_forget_s": 4, "limits_settle_ms": 20}
    dead, alive = (of_process(own_redis.url, **short) for _ in range(2))
    beating = asyncio.create_task(alive.run())
    assert await dead.enter(7, "")
    assert await alive.enter(7, "")
    assert not await alive.enter(7, "")
    await until(lambda: alive.enter(7, ""))
    late = of_process(own_redis.url, **short)
    assert not await late.enter(7, ""), "who lives is not forgotten"
    beating.cancel()
    await asyncio.gather(*(one.aclose() for one in (dead, alive, late)))


async def test_it_leaves_nothing_for_ever(own_redis: OwnRedis) -> None:
    """Processes without sockets, such as turn workers, that were killed and never came back."""
    shared = [SharedLimits(own_redis.url, f"process-{n}", forget_s=1) for n in range(3)]
    for one in shared[:2]:
        await one.live(0)
    assert await shared[2].enter({"user:7": (1, 2)})
    with redis.Redis.from_url(own_redis.url, decode_responses=True) as client:
        assert all(client.pttl(key) > 0 for key in client.scan_iter("*"))

        async def alone() -> bool:
            await shared[2].live(1)
            return bool(client.zrange("hermes:limits:processes", 0, -1) == ["process-2"])

        await until(alone)
        assert client.pttl("hermes:limits:processes") > 0
    for one in shared:
        await one.aclose()


async def test_it_counts_alone_while_redis_is_away(
    own_redis: OwnRedis, caplog: pytest.LogCaptureFixture
) -> None:
    quick = {"user_sockets": 2, "sends_per_s": 0.001, "sends_burst": 3, "limits_settle_ms": 20}
    one, two = (of_process(own_redis.url, **quick) for _ in range(2))
    assert await one.enter(7, "")
    own_redis.kill()
    assert [await two.enter(7, "") for _ in range(3)] == [True, True, False]
    assert [two.start(7) == 0 for _ in range(4)] == [True] * 3 + [False]
    await two.settle()
    assert [record.message for record in caplog.records] == [
        "Redis does not count limits; this process counts alone"
    ]
    own_redis.start()
    beating = [asyncio.create_task(limits.run()) for limits in (one, two)]

    async def one_is_full() -> bool:
        if entered := await one.enter(7, ""):
            one.leave(7, "")
        return not entered

    await until(one_is_full)  # an empty Redis was told anew of all sockets
    for task in beating:
        task.cancel()
    await asyncio.gather(one.aclose(), two.aclose())


async def test_it_waits_for_no_redis_within_a_command(own_redis: OwnRedis) -> None:
    """The hot path knows no Redis: it is a plain call."""
    limits = of_process(own_redis.url)
    with redis.Redis.from_url(own_redis.url) as client:
        before = client.info("commandstats")
        assert [limits.command(7, sends=True) for _ in range(100)] == [0] * 100
        after = client.info("commandstats")
        assert {name for name in after if name not in before} <= {"cmdstat_info"}
    await limits.aclose()
