"""How a process hears that it is to end, and that it does."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gateway_app.host import GatewayHost

logger: Final = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_THREADS_S: Final = 5.0
"""Python waits for threads for ever, and a tool of a foreign app may hang in one."""
_CLOSING_S: Final = 15.0
"""What is closed at the end waits for others: the database, Redis, a provider."""
_AGAIN_S: Final = 0.01
"""What was told in vain is told again after it: the finalizer that swallowed it is over by then."""


class _Told(SystemExit):
    """A signal came before anything was served."""


@contextmanager
def ending_when_told(tell: Callable[[str], None], sentence: str) -> Iterator[None]:
    """A signal ends what is done here, and the process: it says `sentence`, its code is 0.

    That holds until whoever serves listens to signals itself. Only a main thread can hear any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(*_: object) -> None:
        deafen()
        _leave_within(_CLOSING_S, 0)
        raise _Told(0)

    def hear_again(*_: object) -> None:
        raise _Told(0)

    # Python ignores what is raised in a finalizer, and calls this hook
    def ignore(ignored: "sys.UnraisableHookArgs") -> None:
        if isinstance(ignored.exc_value, _Told):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            others(ignored)

    others, sys.unraisablehook = sys.unraisablehook, ignore
    before = {number: signal.signal(number, hear) for number in _SIGNALS}
    alarm = signal.signal(signal.SIGALRM, hear_again)
    try:
        yield
    except _Told:
        tell(sentence)
        raise SystemExit(0) from None
    finally:
        sys.unraisablehook = others
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        for number, listener in before.items():
            if signal.getsignal(number) is hear:
                signal.signal(number, listener)


def listen(begin_to_end: Callable[[], None]) -> None:
    """Each signal calls `begin_to_end`, until nothing is left to end (`deafen`).

    An event loop's own listeners go when it does, and a signal that comes then would be a death.
    It is called in the midst of anything, itself too: it must not wait for a lock.
    """
    for number in _SIGNALS:
        signal.signal(number, lambda *_: begin_to_end())


def deafen() -> None:
    """The process ends by itself from here on: a signal changes nothing, its code least of all."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def limit_drain(drain_s: float, code: int = 0) -> None:
    """The process ends with `code` soon after its drain should be over, whatever it waits for.

    What was acknowledged is stored, and a run that was not released is an orphan soon.
    """
    _leave_within(drain_s + _CLOSING_S, code)


async def close_and_leave(gateway: GatewayHost, code: int = 0) -> None:
    """The gateway is closed. The process ends soon with `code`, whatever does not end by itself."""
    _leave_within(_CLOSING_S, code)
    await gateway.aclose()
    deafen()
    _leave_within(_THREADS_S, code)


def _leave_within(seconds: float, code: int) -> None:
    timer = threading.Timer(seconds, _leave, [code])
    timer.daemon = True
    timer.start()


def _leave(code: int) -> None:
    logger.warning("Something did not end by itself; the process ends without it")
    os._exit(code)
