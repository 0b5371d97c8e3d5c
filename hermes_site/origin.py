"""Which Origin a websocket handshake with a cookie may come from."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

from gateway_app import limits
from hermes_site.types import Scope

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
Origin = tuple[str, str, int]


def header(scope: Scope, name: bytes) -> str | None:
    """The value of a header that came exactly once; None if it is absent or repeated."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0].decode("latin-1") if len(values) == 1 else None


def parse_origin(text: str) -> Origin | None:
    """(scheme, host, port) of a serialised origin; None for anything else, `null` included."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    default = _DEFAULT_PORTS.get(parts.scheme)
    exact = f"{parts.scheme}://{parts.netloc}" == text
    if default is None or not exact or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, default if port is None else port


def request_origin(scope: Scope) -> Origin | None:
    """The origin at which this request reached us; None if its Host is not in ALLOWED_HOSTS."""
    host = header(scope, b"host")
    if host is None or not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return None
    return parse_origin(f"{_scheme(scope)}://{host.lower()}")


def is_trusted(scope: Scope) -> bool:
    """The handshake's Origin is the request's own or listed in CSRF_TRUSTED_ORIGINS.

    A Host outside ALLOWED_HOSTS refuses every Origin (DNS rebinding).
    """
    text = header(scope, b"origin")
    origin = parse_origin(text.lower()) if text else None
    own = request_origin(scope)
    if origin is None or own is None:
        return False
    return origin == own or _is_listed(origin, settings.CSRF_TRUSTED_ORIGINS)


def client_address(scope: Scope) -> str:
    """Where a handshake comes from."""
    seen = [value.decode("latin-1") for key, value in scope["headers"] if key == b"x-forwarded-for"]
    client = scope.get("client")
    return limits.client_address(str(client[0]) if client else "", ",".join(seen))


def _scheme(scope: Scope) -> str:
    if settings.SECURE_PROXY_SSL_HEADER:
        name, secure = settings.SECURE_PROXY_SSL_HEADER
        wire_name = name.removeprefix("HTTP_").replace("_", "-").lower().encode()
        if (value := header(scope, wire_name)) is not None:
            return "https" if value.split(",")[0].strip() == secure else "http"
    return "https" if scope.get("scheme") in {"wss", "https"} else "http"


def _is_listed(origin: Origin, trusted: Iterable[str]) -> bool:
    """`https://*.example.com` lists every subdomain, as in Django's own CSRF check."""
    scheme, host, port = origin
    for entry in trusted:
        listed = parse_origin(entry.lower().replace("*", "", 1))
        if listed is None or (listed[0], listed[2]) != (scheme, port):
            continue
        if is_same_domain(host, listed[1]) if "*" in entry else host == listed[1]:
            return True
    return False
