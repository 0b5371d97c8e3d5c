"""Reaches up from a commit to the agent caches of this process."""

from typing import Any
from weakref import WeakSet

from gateway_app.agent_cache import AgentCache
from sessions_app.signals import TranscriptCommit, transcript_committed

_caches: WeakSet[AgentCache] = WeakSet()


def register_cache(cache: AgentCache) -> None:
    """From now on this process's own commits advance `cache`."""
    _caches.add(cache)


def rebaseline(*, commit: TranscriptCommit, **_: Any) -> None:
    """Compare-and-advance, in the committing thread: what does not fit is left to the guard."""
    for cache in list(_caches):
        cache.rebaseline(commit)


def connect() -> None:
    """Connects the receivers; called once, when the app is ready."""
    transcript_committed.connect(rebaseline, dispatch_uid="gateway_app.rebaseline")
