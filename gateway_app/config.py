"""Every tunable of the gateway, with its unit, in one frozen value."""

from dataclasses import dataclass
from functools import cache

from django.conf import settings


@dataclass(frozen=True)
class GatewayConfig:
    """Suffixes give units: `_s`, `_ms`, `_bytes`, `_rows`. Nothing here changes at run time."""

    # leases and recovery
    lease_s: float = 15
    lease_renew_s: float = 5
    heartbeat_s: float = 1
    max_runs: int = 3
    resume_window_s: float = 3600
    drain_s: float = 30
    # the event log
    flush_tick_ms: float = 50
    flush_quick_tick_ms: float = 20
    flush_quick_runs: int = 10
    fold_after_s: float = 60
    log_keep_s: float = 7 * 86_400
    log_keep_events: int = 10_000
    storage_patience_s: float = 20
    storage_retry_s: float = 2
    poll_s: float = 2
    news_tick_ms: float = 100
    housekeeping_s: float = 15
    # what a process tells of itself
    presence_s: float = 5
    presence_baselines: int = 256
    # the agent cache
    cache_entries: int = 128
    cache_idle_s: float = 3600
    cache_bytes: int = 256 * 1024 * 1024
    fallback_cache_entries: int = 16
    fallback_cache_bytes: int = 32 * 1024 * 1024
    # sockets
    hello_timeout_s: float = 10
    heartbeat_ping_s: float = 25
    max_frame_bytes: int = 1024 * 1024
    max_hello_bytes: int = 16 * 1024
    window_frames: int = 256
    window_bytes: int = 1024 * 1024
    lag_close_s: float = 30
    max_open_commands: int = 64
    reauthorise_s: float = 30
    # what one person, or one address, may ask: of all processes that share a Redis
    commands_per_s: float = 200
    commands_burst: int = 2000
    sends_per_s: float = 50
    sends_burst: int = 500
    connects_per_s: float = 20
    connects_burst: int = 500
    user_sockets: int = 2500
    address_sockets: int = 5000
    max_refusals: int = 100
    limits_settle_ms: float = 250
    limits_forget_s: float = 15
    # files of conversations
    import_bytes: int = 64 * 1024 * 1024
    import_line_bytes: int = 8 * 1024 * 1024
    # turns
    max_queued: int = 32
    snapshot_rows: int = 50
    # providers
    connect_timeout_s: float = 10
    first_token_timeout_s: float = 120
    idle_timeout_s: float = 60
    total_timeout_s: float = 1800
    max_retries: int = 2
    # tools
    tool_timeout_s: float = 60
    tool_threads: int = 8
    tool_result_characters: int = 100_000
    # threads
    reader_threads: int = 4
    postgres_threads: int = 8
    # from the environment
    default_model: str | None = None
    local_url: str | None = None
    openai_api_key: str | None = None
    openai_base_url: str | None = None
    anthropic_api_key: str | None = None
    anthropic_base_url: str | None = None
    turns: str = "inline"


@cache
def gateway_config() -> GatewayConfig:
    """The configuration of this process, from `settings.ENVIRONMENT`."""
    env = settings.ENVIRONMENT
    return GatewayConfig(
        default_model=env.model,
        local_url=env.local_url,
        openai_api_key=env.openai_api_key,
        openai_base_url=env.openai_base_url,
        anthropic_api_key=env.anthropic_api_key,
        anthropic_base_url=env.anthropic_base_url,
        turns=env.turns,
    )
