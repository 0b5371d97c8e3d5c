"""How often a password may be tried: counted in the database, for all processes alike.

Each try counts before the password is looked at, so that many at once gain nothing. A few are free;
after that each one makes the next wait longer. Three counts: the pair of a name and an address; the
name, from wherever; the address, whatever the name. Who logged in from a browser before is counted
there by that browser, not by the name: a stranger who tries a name cannot keep its owner out.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from gateway_app.limits import client_address, is_loopback
from gateway_app.models import LoginTries

DEVICE_COOKIE: Final = "hermes_device"
_SALT: Final = "gateway_app.login_limits"
FORGET: Final = timedelta(hours=1)
"""So long after its last wait a count begins anew."""


@dataclass(frozen=True, slots=True)
class Bound:
    """`free` tries; the next wait is 2 s, and doubles up to `longest_s`."""

    free: int
    longest_s: int

    def wait(self, tries: int) -> timedelta:
        over = min(tries - self.free, 16)
        return timedelta(seconds=0 if over <= 0 else min(2**over, self.longest_s))


PAIR: Final = Bound(free=5, longest_s=900)
NAME: Final = Bound(free=20, longest_s=60)
ADDRESS: Final = Bound(free=50, longest_s=900)

Bounds = dict[str, Bound]


def bounds_of(request: HttpRequest, name: str) -> Bounds:
    """What counts a try of this name: key -> bound. Keys tell neither name nor address."""
    meta = request.META
    address = client_address(meta.get("REMOTE_ADDR") or "", meta.get("HTTP_X_FORWARDED_FOR"))
    device = request.get_signed_cookie(DEVICE_COOKIE, default=None, salt=_SALT)
    if device is not None and device == _key("name", name):
        return {_key("device", name): PAIR}
    bounds = {_key("pair", name, address): PAIR, _key("name", name): NAME}
    # our own proxy, or the owner at the machine: what others try must not shut them out
    return bounds if is_loopback(address) else bounds | {_key("address", address): ADDRESS}


def device_of(name: str) -> dict[str, str]:
    """The cookie of a browser where this name logged in: name, value and salt."""
    return {"key": DEVICE_COOKIE, "value": _key("name", name), "salt": _SALT}


def take(bounds: Bounds) -> int:
    """Counts one try; 0, or how many seconds to wait, and then nothing is counted."""
    now = timezone.now()
    with transaction.atomic():
        known = {
            row.key: row
            for row in LoginTries.objects.select_for_update().filter(key__in=bounds).order_by("key")
        }
        until = max((row.until for row in known.values()), default=now)
        if until > now:
            return ceil((until - now).total_seconds())
        rows = [_next(known.get(key), key, bound, now) for key, bound in bounds.items()]
        LoginTries.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["key"], update_fields=["tries", "until"]
        )
    return 0


def give_back(bounds: Bounds) -> None:
    """The password was right: its try does not count, and its pair begins anew."""
    pairs = [key for key, bound in bounds.items() if bound is PAIR]
    LoginTries.objects.filter(key__in=pairs).delete()
    others = LoginTries.objects.filter(key__in=bounds.keys() - set(pairs))
    others.update(tries=Greatest(F("tries") - 1, 0), until=timezone.now())


def _next(row: LoginTries | None, key: str, bound: Bound, now: datetime) -> LoginTries:
    tries = 1 if row is None or row.until < now - FORGET else row.tries + 1
    return LoginTries(key=key, tries=tries, until=now + bound.wait(tries))


def _key(*parts: str) -> str:
    text = "\n".join(part.casefold() for part in parts)
    return salted_hmac(_SALT, text, algorithm="sha256").hexdigest()
