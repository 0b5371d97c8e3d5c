"""The end of a process that has nothing left to do."""

import os
import threading
from typing import Final

_PATIENCE_S: Final = 5.0


def leave_soon(code: int = 0) -> None:
    """The process ends in a few seconds, though a thread of a foreign app will not end.

    Python waits for threads for ever, and a tool may hang in one.
    """
    timer = threading.Timer(_PATIENCE_S, os._exit, [code])
    timer.daemon = True
    timer.start()
