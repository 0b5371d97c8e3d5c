"""The cache's bounds: what it drops, in which order, and what it never drops."""

import time
from uuid import UUID

from gateway_app.agent_cache import AgentCache
from gateway_app.cached_agent import CachedAgent
from gateway_app.providers.openai_chat import OpenAIChatWire
from sessions_app.models import new_id
from sessions_app.signals import TranscriptRow


def admit(cache: AgentCache, text: str = "x") -> UUID:
    """A warm agent with one row; its session."""
    agent = CachedAgent(new_id(), OpenAIChatWire(official=False), "")
    parts = f'[{{"type":"text","text":"{text}"}}]'
    agent.apply(
        (-1, 0), (1, 0), [TranscriptRow(new_id(), 1_000_001, "user", "active", parts, None)]
    )
    cache._admit(agent)
    return agent.session_id


def test_it_drops_the_least_recently_used_beyond_its_entries() -> None:
    cache = AgentCache(entries=2, idle_s=3600, size_bytes=10**6)
    first, second = admit(cache), admit(cache)
    cache.get(first)
    third = admit(cache)
    assert [cache.get(one) is not None for one in (first, second, third)] == [True, False, True]


def test_it_drops_beyond_its_bytes_and_counts_what_is_left() -> None:
    cache = AgentCache(entries=100, idle_s=3600, size_bytes=2500)
    sessions = [admit(cache, "x" * 1000) for _ in range(5)]
    assert [cache.get(one) is not None for one in sessions] == [False] * 3 + [True] * 2


def test_it_drops_what_was_idle_for_too_long() -> None:
    cache = AgentCache(entries=100, idle_s=60, size_bytes=10**6)
    idle, used = admit(cache), admit(cache)
    agent = cache.get(idle)
    assert agent is not None
    agent.used_at = time.monotonic() - 61
    assert cache.sweep() == 1
    assert cache.get(idle) is None
    assert cache.get(used) is not None


def test_it_never_drops_what_runs() -> None:
    """Case G91: not by any bound, and not when it is told to."""
    cache = AgentCache(entries=1, idle_s=0, size_bytes=1)
    agent = CachedAgent(new_id(), OpenAIChatWire(official=False), "")
    session_id = agent.session_id
    cache.pin(session_id)
    cache._admit(agent)
    for _ in range(3):
        admit(cache)
    assert not cache.evict(session_id)
    assert cache.get(session_id) is agent
    cache.unpin(session_id)
    assert cache.evict(session_id)
