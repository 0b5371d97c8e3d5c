"""How many files this process and those that it starts may have open: a socket is one of them."""

import resource
from typing import Final

MOST: Final = 65_536
"""More helps nobody, and some programs walk through all they may have."""
FEW: Final = 4096


def raise_limit() -> int:
    """The limit is as high as the system lets this process go, up to MOST; what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return MOST if soft == resource.RLIM_INFINITY else soft


def too_few(limit: int) -> str | None:
    """A sentence for whoever serves many; None if there is nothing to say."""
    if limit >= FEW:
        return None
    return (
        f"Only {limit} files may be open at once, and each websocket is one. Raise the limit"
        " before the start (`ulimit -n`, systemd's LimitNOFILE)."
    )
