"""Reaches up from a commit to the agent caches and the lists of this process."""

from typing import Any, Protocol
from uuid import UUID
from weakref import WeakSet

from gateway_app.agent_cache import AgentCache
from sessions_app.signals import TranscriptCommit, session_listed, transcript_committed


class Lists(Protocol):
    """Who tells lists of sessions what is new in them."""

    def note_from_thread(self, session_id: UUID) -> None: ...


_caches: WeakSet[AgentCache] = WeakSet()
_lists: WeakSet[Lists] = WeakSet()


def register_cache(cache: AgentCache) -> None:
    """From now on this process's own commits advance `cache`."""
    _caches.add(cache)


def register_lists(lists: Lists) -> None:
    """From now on this process's own commits are news for `lists`."""
    _lists.add(lists)


def forget_lists(lists: Lists) -> None:
    _lists.discard(lists)


def rebaseline(*, commit: TranscriptCommit, **_: Any) -> None:
    """Compare-and-advance, in the committing thread: what does not fit is left to the guard."""
    for cache in list(_caches):
        cache.rebaseline(commit)


def note_committed(*, commit: TranscriptCommit, **_: Any) -> None:
    """Rows are news for a list: its owner may not have read them."""
    note_listed(session_id=commit.session_id)


def note_listed(*, session_id: UUID, **_: Any) -> None:
    """In the committing thread: the read follows on the loop."""
    for lists in list(_lists):
        lists.note_from_thread(session_id)


def connect() -> None:
    """Connects the receivers; called once, when the app is ready."""
    transcript_committed.connect(rebaseline, dispatch_uid="gateway_app.rebaseline")
    transcript_committed.connect(note_committed, dispatch_uid="gateway_app.note_committed")
    session_listed.connect(note_listed, dispatch_uid="gateway_app.note_listed")
