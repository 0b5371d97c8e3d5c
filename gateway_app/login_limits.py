"""How often passwords may be tried in this process: each try costs a slow hash, and may be a guess.

A login that succeeds counts for nothing. Whoever tries from elsewhere locks nobody out.
"""

from collections.abc import Hashable
from functools import cache
from threading import Lock
from typing import Any, Final

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import ngettext_lazy

from gateway_app.config import GatewayConfig, gateway_config
from gateway_app.limits import Meter, client_address, is_loopback

_LONGEST_NAME: Final = 150


class LoginLimits:
    """May be asked from any thread."""

    def __init__(self, config: GatewayConfig) -> None:
        self._lock = Lock()
        self._people = Meter(config.logins_per_s, config.logins_burst)
        self._addresses = Meter(config.address_logins_per_s, config.address_logins_burst)

    def take(self, address: str, name: str) -> int:
        """Seconds until this name may be tried from there; 0: now, and the try is counted."""
        with self._lock:
            wait_ms = self._people.take(_person(address, name))
            if not wait_ms and not is_loopback(address):
                wait_ms = self._addresses.take(address)
            return -(-wait_ms // 1000)

    def give_back(self, address: str, name: str) -> None:
        """The try was a login."""
        with self._lock:
            self._people.give_back(_person(address, name))
            self._addresses.give_back(address)


def _person(address: str, name: str) -> Hashable:
    return address, name.casefold()[:_LONGEST_NAME]


@cache
def login_limits() -> LoginLimits:
    """Those of this process."""
    return LoginLimits(gateway_config())


def _address(request: HttpRequest | None) -> str:
    meta = request.META if request else {}
    return client_address(meta.get("REMOTE_ADDR") or "", meta.get("HTTP_X_FORWARDED_FOR"))


class _Limited(AuthenticationForm):
    """Asks nobody about a password that comes too soon."""

    def clean(self) -> dict[str, Any]:
        address, name = _address(self.request), self.cleaned_data.get("username") or ""
        if wait_s := login_limits().take(address, name):
            raise ValidationError(
                ngettext_lazy(
                    "Too many tries. Wait %(seconds)d second.",
                    "Too many tries. Wait %(seconds)d seconds.",
                    "seconds",
                ),
                code="too_many",
                params={"seconds": wait_s},
            )
        cleaned = super().clean()
        login_limits().give_back(address, name)
        return cleaned


class LoginForm(_Limited):
    """Of the chat."""


class AdminLoginForm(_Limited, AdminAuthenticationForm):
    """Of the admin."""
