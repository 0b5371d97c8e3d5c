"""The measurements, each a few rows of the table. Ratios are within one round, then the median."""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import servers
from bench.servers import Target
from bench.table import Row, at_least, at_most, median, percentile

GIB = 1 << 30
TICK_MS = 50
Figures = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """How much is measured. No round begins after `rounds_s`, no stage after `whole_s`."""

    rounds: int = 3
    conversations: int = 10
    bursts: int = 4
    beside_s: float = 4
    saturate_s: float = 4
    streams: int = 150
    paced_s: float = 6
    sockets: int = 2000
    cached: int = 20_000
    rows: int = 1_000_000
    appends: int = 2000
    listed: int = 50_000
    listings: int = 50
    rounds_s: float = 180
    whole_s: float = 420


QUICK = Size(
    rounds=1, conversations=4, bursts=1, beside_s=1, saturate_s=1.5, paced_s=2, sockets=400,
    cached=5000, rows=20_000, appends=400, listed=5000, listings=20,
    rounds_s=20, whole_s=60,
)  # fmt: skip


@dataclass
class Rounds:
    """What every round of the side-by-side scenarios found: scenario, target -> figures."""

    found: list[dict[tuple[str, str], Figures]] = field(default_factory=list)

    def measure(self, targets: Sequence[tuple[str, Target]], size: Size) -> None:
        """Every scenario on every target in turn, so that a busy minute hits them all."""
        began = time.monotonic()
        while len(self.found) < size.rounds:
            if self.found and time.monotonic() - began > size.rounds_s:
                return
            found = {}
            for name, target in targets:
                if name != "lean":
                    found["single", name] = target.load("single", count=size.conversations)
            for name, target in targets:
                if name != "lean":
                    found["beside", name] = target.load("beside", seconds=size.beside_s)
            for name, target in targets:
                crowd = target.load("crowd", count=size.bursts, seconds=size.saturate_s)
                found |= {(scenario, name): figures for scenario, figures in crowd.items()}
            self.found.append(found)

    def of(self, pick: Callable[[dict[tuple[str, str], Figures]], float]) -> float:
        return median([pick(found) for found in self.found])

    def value(self, scenario: str, target: str, name: str, share: float | None = None) -> float:
        """The median over rounds of a figure, or of its percentile `share`."""
        return self.of(lambda found: _figure(found[scenario, target][name], share))

    def ratio(self, scenario: str, name: str, share: float | None, other: str = "relay") -> float:
        return self.of(
            lambda found: (
                _figure(found[scenario, "hermes"][name], share)
                / _figure(found[scenario, other][name], share)
            )
        )

    def added_ms(self, scenario: str, target: str = "hermes") -> float:
        """The median time to the first token above the direct client's."""
        return self.of(
            lambda found: (
                median(found[scenario, target]["ttft_ms"])
                - median(found[scenario, "direct"]["ttft_ms"])
            )
        )


def _figure(value: Any, share: float | None) -> float:
    return float(value) if share is None else percentile(value, share)


def side_by_side(direct: Target, hermes: Target, size: Size) -> list[Row]:
    """Hermes beside the direct client and the relay, on every goal that is a comparison."""
    rounds = Rounds()
    with servers.relay(direct.url, "httpx") as relay, servers.relay(direct.url, "aiohttp") as lean:
        rounds.measure(
            [("direct", direct), ("relay", relay), ("lean", lean), ("hermes", hermes)], size
        )
    return comparisons(rounds)


def comparisons(rounds: Rounds) -> list[Row]:
    value, ratio, added = rounds.value, rounds.ratio, rounds.added_ms
    first = rounds.of(
        lambda found: (
            median(found["single", "hermes"]["first_ttft_ms"])
            - median(found["single", "direct"]["ttft_ms"])
        )
    )
    beside = f"the relay adds {added('beside', 'relay'):.1f} ms there"
    ttft = " / ".join(f"{value('burst', name, 'ttft_ms', 0.5):.0f}"
                      for name in ("direct", "relay", "hermes"))  # fmt: skip
    lean = f"beside the leanest relay {ratio('saturated', 'cpu_token_us', None, 'lean'):.2f}x"
    speed = f"leanest relay: {ratio('saturated', 'tokens_s', None, 'lean'):.2f}x"
    alone = value("single", "hermes", "cpu_turn_ms")
    many = value("burst", "hermes", "cpu_turn_ms")
    return [
        at_most("added time to first token", 8, added("single"), " ms",
                f"relay {added('single', 'relay'):.1f}; a conversation's first turn {first:.1f}"),
        Row("the same beside 10 live streams", "", f"{added('beside'):.3g} ms", None, beside),
        at_most("time to first token, 50 at once, p50", 2, ratio("burst", "ttft_ms", 0.5),
                "x relay", f"direct / relay / Hermes {ttft} ms"),
        at_most("time to first token, 50 at once, p95", 1.2, ratio("burst", "ttft_ms", 0.95),
                "x relay"),
        Row("whole turn, 50 at once, p50", "", f"{ratio('burst', 'total_ms', 0.5):.2f}x relay"),
        at_most("CPU a token, stored, saturated", 0.75, ratio("saturated", "cpu_token_us", None),
                "x relay", f"{value('saturated', 'hermes', 'cpu_token_us'):.0f} us; {lean}"),
        at_most("CPU a stored turn", 10, max(alone, many), " ms",
                f"{alone:.1f} one after another, {many:.1f} at 50; relay"
                f" {value('single', 'relay', 'cpu_turn_ms'):.1f},"
                f" {value('burst', 'relay', 'cpu_turn_ms'):.1f}"),
        at_least("tokens a second, saturated", 2, ratio("saturated", "tokens_s", None), "x relay",
                 f"{value('saturated', 'hermes', 'tokens_s'):,.0f} of Hermes; {speed}"),
    ]  # fmt: skip


def streams(direct: Target, hermes: Target, size: Size) -> list[Row]:
    """How many streams at 83 tokens a second one core carries."""
    order = {"count": size.streams, "seconds": size.paced_s}
    alone = percentile(direct.load("paced", **order)["gaps_ms"], 0.95)
    found = hermes.load("paced", **order)
    gap = percentile(found["gaps_ms"], 0.95)
    return [
        at_least("streams a core at 83 tokens/s", 150, size.streams / found["core"], "",
                 f"{size.streams} took {found['core']:.2f} cores"),
        at_most("gap between frames there, p95", 2, gap / TICK_MS, " ticks",
                f"{gap:.0f} ms; direct {alone:.0f} ms, of 12 due"),
    ]  # fmt: skip


def memory(model_url: str, size: Size) -> list[Row]:
    """What sockets and cached sessions keep, in fresh processes."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        env = servers.hermes_environment(Path(folder), model_url)
        with servers.hermes(env) as hermes:
            idle = hermes.load("idle", count=size.sockets)
        cached = servers.run_json(["-m", "bench.memory", str(size.cached)], env)
    return [
        at_least("cached short sessions a GiB", 10_000, GIB / cached, "",
                 f"{cached / 1024:.1f} KiB each, of {size.cached:,}"),
        at_least("idle websockets a GiB", 25_000, GIB / idle["socket_bytes"], "",
                 f"{idle['socket_bytes'] / 1024:.1f} KiB each, of {size.sockets:,}; all of them"
                 f" {idle['core'] * 100:.1f} % of a core"),
    ]  # fmt: skip


def appends(model_url: str, size: Size) -> list[Row]:
    """One append, in a database of 10 rows and in a large one."""
    rows = []
    for count in (10, size.rows):
        with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
            env = servers.hermes_environment(Path(folder), model_url)
            took = servers.run_json(["-m", "bench.append", str(count), str(size.appends)], env)
        for limit, share, name in ((0.5, 0.5, "p50"), (2, 0.99, "p99")):
            what = f"append at {count:,} rows, {name}"
            rows.append(at_most(what, limit, percentile(took, share), " ms"))
    return rows


def listing(model_url: str, size: Size) -> list[Row]:
    """The list of a person with many conversations: a page, and a search in the titles."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        env = servers.hermes_environment(Path(folder), model_url)
        took = servers.run_json(["-m", "bench.listing", str(size.listed), str(size.listings)], env)
    p50 = {name: percentile(values, 0.5) for name, values in took.items()}
    p95 = {name: percentile(values, 0.95) for name, values in took.items()}
    of = f"of {size.listed:,} conversations, p50"
    return [
        at_most(f"a page {of}", 200, p50["first"], " ms",
                f"p95 {p95['first']:.0f} ms; from the middle {p50['middle']:.1f} ms"),
        at_most(f"a search in titles {of}", 200, max(p50["oldest"], p50["none"]), " ms",
                f"p95 {p95['none']:.0f} ms; what all titles have {p50['common']:.1f} ms"),
    ]  # fmt: skip


def postgres(direct: Target, url: str, size: Size) -> list[Row]:
    """What Hermes on PostgreSQL adds to the first token."""
    with ExitStack() as stack:
        url = stack.enter_context(servers.scratch_database(url))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-bench-")))
        env = servers.hermes_environment(folder, direct.url, DATABASE_URL=url)
        hermes = stack.enter_context(servers.hermes(env))
        added, cpu = [], []
        for _ in range(size.rounds):
            alone = direct.load("single", count=size.conversations)
            found = hermes.load("single", count=size.conversations)
            added.append(median(found["ttft_ms"]) - median(alone["ttft_ms"]))
            cpu.append(found["cpu_turn_ms"])
    note = f"CPU a turn {median(cpu):.1f} ms"
    return [at_most("added on PostgreSQL", 14, median(added), " ms", note)]


def other_process(model_url: str, redis_url: str, size: Size) -> list[Row]:
    """From a commit in one process to the frame at another one's client, woken through Redis."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-bench-")))
        env = servers.hermes_environment(folder, model_url, REDIS_URL=redis_url)
        here = stack.enter_context(servers.hermes(env))
        there = stack.enter_context(servers.hermes(env))
        found = here.load("remote", other_url=there.url, count=size.conversations)
        rows = servers.run_json(["-m", "bench.committed", found["session_id"]], env)
    committed = {int(seq): datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
                 for seq, at in rows}  # fmt: skip
    late = [(at - committed[seq]) * 1000 for seq, at in found["arrivals"] if seq in committed]
    return [
        at_most("commit to another process's client", 20, percentile(late, 0.5), " ms",
                f"p95 {percentile(late, 0.95):.0f} ms, of {len(late)} flushes, through Redis"),
    ]  # fmt: skip


def prompt(model_url: str) -> list[Row]:
    """The fixed part of every request of the default agent."""
    env = servers.hermes_environment(Path(), model_url)
    kb = servers.run_json(["-m", "bench.committed", "prompt"], env) / 1024
    return [at_most("fixed prompt and tools", 8, kb, " KB")]
