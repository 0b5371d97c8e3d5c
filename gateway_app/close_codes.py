"""Why the server closes a socket. Clients come back after RESTART, FAULT and LAGGING."""

from typing import Final

REVOKED: Final = 4001
POLICY: Final = 4008
TOO_LARGE: Final = 4009
FAULT: Final = 4011
RESTART: Final = 4012
LAGGING: Final = 4013
