"""Whether this process can write: what its runs and its log find out, told to whoever must know."""

from collections.abc import Callable
from typing import Final

LONG_S: Final = 10
"""No write of ours takes so long by itself: another program holds SQLite's lock."""
WAITS: Final = "What is to be stored waits for the database."


class StorageState:
    """`changed` is called on the event loop, when a first one waits and when none does any more."""

    def __init__(self, changed: Callable[[bool], None]) -> None:
        self._changed = changed
        self._waiting: set[object] = set()

    @property
    def storing(self) -> bool:
        return not self._waiting

    def away(self, who: object) -> None:
        """`who` could not write, and tries again."""
        if self.storing:
            self._waiting.add(who)
            self._changed(False)
        self._waiting.add(who)

    def back(self, who: object) -> None:
        """`who` wrote, or gave up."""
        if who in self._waiting:
            self._waiting.discard(who)
            if self.storing:
                self._changed(True)
