"""What Prometheus reads: the metrics of the process, or of all workers of its group."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gateway_app import group_metrics, metrics
from gateway_app.models import Turn
from gateway_app.moment import Moment
from sessions_app import database as db

_OPEN: Final = (
    f"SELECT state, count(*) FROM {Turn._meta.db_table}"
    " WHERE state IN ('queued', 'running') GROUP BY state"
)
"""Answered by the partial index of open turns, however many have ended."""


def count_open_turns() -> dict[str, int]:
    """Turns of all processes that wait or run."""
    return {"queued": 0, "running": 0} | dict(db.rows(_OPEN))


class _OpenTurns(Collector):
    """Turns that have not ended, as the database tells."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        turns = GaugeMetricFamily(
            "hermes_open_turns", "Turns of all processes, by state.", labels=["state"]
        )
        for state, count in sorted(self._counts.items()):
            turns.add_metric([state], count)
        yield turns


def scrape(moment: Moment, open_turns: Mapping[str, int] | None) -> bytes:
    """Every metric in Prometheus' text format. `open_turns` None: the database did not tell."""
    moment.look()
    told = generate_latest(group_metrics.of_group(metrics.REGISTRY))
    if open_turns is not None:
        database = CollectorRegistry(auto_describe=False)
        database.register(_OpenTurns(open_turns))
        told += generate_latest(database)
    return told
