"""What is wrong with the environment: one sentence for each bad value, with its mend."""

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

TRUE: Final = {"1", "true", "on"}
FALSE: Final = {"0", "false", "off"}
SECRET_KEY_LENGTH: Final = 32
_HOST: Final = re.compile(r"\*|\.?[\w-]+(\.[\w-]+)*\.?|\[[0-9a-fA-F:.]+\]")
_KEY: Final = re.compile(r"[!-~]+")
"""Printable ASCII without spaces: what an HTTP header can carry."""

Text = Callable[[str], str | None]


def _split(url: str) -> SplitResult | None:
    """The parts of a URL; None where its host or port cannot be read."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 raises ValueError for what is no port
    except ValueError:
        return None
    return parts


def _bad_url(url: str | None, schemes: set[str]) -> bool:
    """Set, but no URL of one of these schemes with a host."""
    if not url:
        return False
    parts = _split(url)
    if parts is None or parts.scheme not in schemes or not parts.hostname:
        return True
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return name == "*" or not _HOST.fullmatch(name)


def bad_public(url: str | None) -> bool:
    """Set, but not the address that people type: a scheme and a host, perhaps with a port."""
    if not url or _bad_url(url, {"http", "https"}):
        return bool(url)
    parts = urlsplit(url)
    return "@" in parts.netloc or parts.path not in {"", "/"} or bool(parts.query + parts.fragment)


def bad_database(url: str) -> bool:
    parts = _split(url)
    if parts is None or parts.scheme not in {"", "sqlite", "postgres", "postgresql"}:
        return True
    return bool(url) and parts.path.strip("/") == ""


def _bad_redis(url: str | None) -> bool:
    if not url or _bad_url(url, {"redis", "rediss"}):
        return bool(url)
    return not re.fullmatch(r"(/\d*)?", urlsplit(url).path)


def problems_of(text: Text) -> Iterator[str]:
    """One sentence for each bad value. Values that may hold a key are not shown."""
    if (debug := text("DEBUG")) and debug.lower() not in TRUE | FALSE:
        yield f"DEBUG is {debug!r}. Set it to 0 or 1."
    if (turns := text("HERMES_TURNS")) and turns not in {"inline", "workers"}:
        yield f"HERMES_TURNS is {turns!r}. Set it to inline or workers."
    if bad_public(text("HERMES_PUBLIC_URL")):
        yield "HERMES_PUBLIC_URL is not an address. Set it to http(s)://HOST or http(s)://HOST:PORT."
    for name, path in (
        ("OPENAI_BASE_URL", "/v1"),
        ("ANTHROPIC_BASE_URL", ""),
        ("HERMES_LOCAL_URL", ""),
    ):
        if _bad_url(text(name), {"http", "https"}):
            forms = f"http(s)://HOST{path}, or http(s)://HOST:PORT{path}"
            yield f"{name} is not a full URL. Set it to {forms}."
    if _bad_redis(text("REDIS_URL")):
        yield "REDIS_URL cannot be read. Set it to redis://HOST:PORT/DB."
    if bad_database(text("DATABASE_URL") or ""):
        yield "DATABASE_URL cannot be read. Set it to sqlite:///PATH or postgres://USER@HOST/NAME."
    if (model := text("HERMES_MODEL")) and not all(model.partition(":")[:2]):
        yield f"HERMES_MODEL is {model!r}. Set it to PROVIDER:MODEL, such as local:smollm2."
    yield from _keys_and_hosts(text)


def _keys_and_hosts(text: Text) -> Iterator[str]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        if (key := text(name)) and not _KEY.fullmatch(key):
            yield f"{name} holds spaces, line breaks or foreign letters. Copy the key again."
    if (secret := text("SECRET_KEY")) and len(secret) < SECRET_KEY_LENGTH:
        yield f"SECRET_KEY is too short. Set it to {SECRET_KEY_LENGTH} random characters or more."
    for host in (text("ALLOWED_HOSTS") or "").split(","):
        if (name := host.strip()) and not _HOST.fullmatch(name):
            yield f"ALLOWED_HOSTS has {name!r}. List host names alone, such as chat.example."
    for origin in (text("CSRF_TRUSTED_ORIGINS") or "").split(","):
        if origin.strip() and "://" not in origin:
            yield f"CSRF_TRUSTED_ORIGINS has {origin.strip()!r}. List addresses in full, such as https://chat.example."
