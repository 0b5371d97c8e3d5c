"""What Prometheus reads of this process: `metrics.py`, and what is so at this moment."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gateway_app import metrics
from gateway_app.host import GatewayHost
from gateway_app.models import Turn
from sessions_app import database as db

_OPEN: Final = (
    f"SELECT state, count(*) FROM {Turn._meta.db_table}"
    " WHERE state IN ('queued', 'running') GROUP BY state"
)
"""Answered by the partial index of open turns, however many have ended."""


def count_open_turns() -> dict[str, int]:
    """Turns of all processes that wait or run."""
    return {"queued": 0, "running": 0} | dict(db.rows(_OPEN))


class _Moment(Collector):
    """The gateway as it is now. `open_turns` None: the database did not tell."""

    def __init__(self, host: GatewayHost, open_turns: Mapping[str, int] | None) -> None:
        self._host, self._open_turns = host, open_turns

    def collect(self) -> Iterator[Metric]:
        host, census = self._host, self._host.cache.census(0)
        verdicts = CounterMetricFamily(
            "hermes_guard_verdicts",
            "What the coherence guard said before requests.",
            labels=["verdict", "reason"],
        )
        for (verdict, reason), count in sorted(host.cache.verdicts.copy().items()):
            verdicts.add_metric([verdict, reason], count)
        yield verdicts
        waiting = GaugeMetricFamily(
            "hermes_database_queue", "Jobs that wait for a database thread.", labels=["lane"]
        )
        for lane, length in host.lanes.waiting().items():
            waiting.add_metric([lane], length)
        yield waiting
        yield CounterMetricFamily(
            "hermes_agent_cache_evictions", "Agents dropped from the cache.", host.cache.evictions
        )
        for name, what, value in (
            ("hermes_running_runs", "Runs in this process.", len(host.runner.live)),
            ("hermes_websockets", "Open websockets of this process.", len(host.connections)),
            ("hermes_agent_cache_agents", "Agents kept warm.", census.agents),
            ("hermes_agent_cache_bytes", "What they take, as estimated.", census.size_bytes),
            ("hermes_draining", "1 while this process takes no new turns.", int(host.draining)),
        ):
            yield GaugeMetricFamily(name, what, value)
        if self._open_turns is not None:
            turns = GaugeMetricFamily(
                "hermes_open_turns", "Turns of all processes, by state.", labels=["state"]
            )
            for state, count in sorted(self._open_turns.items()):
                turns.add_metric([state], count)
            yield turns


def scrape(host: GatewayHost, open_turns: Mapping[str, int] | None) -> bytes:
    """Every metric of the process, in Prometheus' text format."""
    moment = CollectorRegistry(auto_describe=False)
    moment.register(_Moment(host, open_turns))
    return generate_latest(metrics.REGISTRY) + generate_latest(moment)
