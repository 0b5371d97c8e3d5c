"""What this process tells Prometheus: counters and histograms that grow as things happen, and
gauges of what is so at a moment (`gateway_app.moment`).

No Django in it, and no label whose values people make.
"""

import asyncio
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY: Final = CollectorRegistry()

_LAG_EVERY_S: Final = 0.1

turns = Counter(
    "hermes_turns", "Turns that ended here, by state and error code.", ["state", "code"],
    registry=REGISTRY,
)  # fmt: skip
input_tokens = Counter("hermes_input_tokens", "Input tokens of ended turns.", registry=REGISTRY)
cached_input_tokens = Counter(
    "hermes_cached_input_tokens", "Those of them that the provider had in its cache.",
    registry=REGISTRY,
)  # fmt: skip
output_tokens = Counter("hermes_output_tokens", "Output tokens of ended turns.", registry=REGISTRY)
first_token = Histogram(
    "hermes_first_token_seconds", "From the start of a run to its first token.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120),
    registry=REGISTRY,
)  # fmt: skip
turn_duration = Histogram(
    "hermes_turn_seconds", "From the start of a run to its end.",
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800),
    registry=REGISTRY,
)  # fmt: skip
flush_duration = Histogram(
    "hermes_log_flush_seconds", "Group commits of the event log.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 20),
    registry=REGISTRY,
)  # fmt: skip
flush_events = Histogram(
    "hermes_log_flush_events", "Events in one group commit.",
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000), registry=REGISTRY,
)  # fmt: skip
loop_lag = Histogram(
    "hermes_event_loop_lag_seconds", "How late the event loop woke a timer.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5), registry=REGISTRY,
)  # fmt: skip
provider_calls = Counter(
    "hermes_provider_calls", "Attempts to reach a model, by how they ended.",
    ["provider", "outcome"], registry=REGISTRY,
)  # fmt: skip
provider_retries = Counter(
    "hermes_provider_retries", "Attempts that were made again.", ["provider"], registry=REGISTRY
)
guard_verdicts = Counter(
    "hermes_guard_verdicts", "What the coherence guard said before requests.",
    ["verdict", "reason"], registry=REGISTRY,
)  # fmt: skip
evictions = Counter(
    "hermes_agent_cache_evictions", "Agents dropped from the cache.", registry=REGISTRY
)
running_runs = Gauge(
    "hermes_running_runs", "Runs in this process.", registry=REGISTRY, multiprocess_mode="livesum"
)
websockets = Gauge(
    "hermes_websockets", "Open websockets.", registry=REGISTRY, multiprocess_mode="livesum"
)
cached_agents = Gauge(
    "hermes_agent_cache_agents", "Agents kept warm.", registry=REGISTRY,
    multiprocess_mode="livesum",
)  # fmt: skip
cached_bytes = Gauge(
    "hermes_agent_cache_bytes", "What they take, as estimated.", registry=REGISTRY,
    multiprocess_mode="livesum",
)  # fmt: skip
database_queue = Gauge(
    "hermes_database_queue", "Jobs that wait for a database thread.", ["lane"], registry=REGISTRY,
    multiprocess_mode="livesum",
)  # fmt: skip
draining = Gauge(
    "hermes_draining", "1 while a process takes no new turns.", registry=REGISTRY,
    multiprocess_mode="livemax",
)  # fmt: skip


class EndedTurn(Protocol):
    """What is counted of a turn; times in ms, None where nothing is known."""

    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    ttft_ms: int | None
    duration_ms: int | None


def count_turn(state: str, code: str, record: EndedTurn) -> None:
    """One more turn ended in this process."""
    turns.labels(state, code).inc()
    input_tokens.inc(record.input_tokens or 0)
    cached_input_tokens.inc(record.cached_tokens or 0)
    output_tokens.inc(record.output_tokens or 0)
    if record.ttft_ms is not None:
        first_token.observe(record.ttft_ms / 1000)
    if record.duration_ms is not None:
        turn_duration.observe(record.duration_ms / 1000)


async def watch_loop() -> None:
    """Measures for ever how late timers are."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_EVERY_S
        await asyncio.sleep(_LAG_EVERY_S)
        loop_lag.observe(max(0.0, loop.time() - due))
