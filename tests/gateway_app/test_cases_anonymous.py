"""Case K2: to somebody unknown every address but login and health stays shut."""

from collections.abc import Iterator, Sequence

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db

SAMPLE = {
    "uuid": "01920000-0000-7000-8000-000000000000", "str": "x", "path": "x", "int": "1",
    "slug": "x", "uuidstr": "01920000-0000-7000-8000-000000000000",
}  # fmt: skip
OPEN = {
    "/healthz", "/readyz", "/accounts/login/", "/accounts/logout/", "/login/x/", "/admin/login/",
    "/admin/logout/", "/admin/jsi18n/", "/i18n/language/",
    "/api/v1/openapi.json", "/manifest.webmanifest", "/diagram/",
}  # fmt: skip


def addresses(patterns: Sequence[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    """Every address of the product, with a sample in each place that takes a value."""
    for one in patterns:
        route = str(one.pattern)
        for name, converter in one.pattern.converters.items():
            kind = type(converter).__name__.removesuffix("Converter").lower()
            kind = {"string": "str"}.get(kind, kind)
            route = route.replace(f"<{kind}:{name}>", SAMPLE[kind]).replace(f"<{name}>", "x")
        if isinstance(one, URLResolver):
            yield from addresses(one.url_patterns, before + route)
        elif not route.startswith("(?P"):  # the admin's catch-all
            yield before + route


def test_it_shows_somebody_unknown_nothing_but_login_and_health() -> None:
    SessionFactory(title="a canary of a title")
    found = [one for one in addresses(get_resolver().url_patterns) if one not in OPEN]
    assert {"/", "/api/v1/me", "/admin/"} <= set(found) and len(found) > 20
    for address in found:
        for method in ("get", "post", "put", "delete"):
            reply = getattr(Client(), method)(address)
            if reply.status_code == 302:
                assert "/login/" in reply["Location"], (method, address, reply["Location"])
            else:
                assert reply.status_code in {401, 403, 404, 405}, (method, address, reply)
            assert b"canary" not in reply.content


def test_it_tells_somebody_unknown_nothing_of_what_is_open() -> None:
    SessionFactory(title="a canary of a title")
    for address in OPEN:
        assert b"canary" not in Client().get(address).content
