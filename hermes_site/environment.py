"""The process environment, read once into one typed value.

Nothing else in the project reads `os.environ`. A bad value does not raise here: it is kept in
`problems`, so that `manage.py check` and `serve` can name every one of them and its mend.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

BASE_DIR: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Environment:
    """Every variable that Hermes knows. Paths are absolute; URLs are as given."""

    data_dir: Path
    database_url: str
    redis_url: str | None
    model: str | None
    public_url: str | None
    turns: str
    local_url: str | None
    openai_api_key: str | None
    openai_base_url: str | None
    anthropic_api_key: str | None
    anthropic_base_url: str | None
    secret_key: str | None
    allowed_hosts: tuple[str, ...]
    csrf_trusted_origins: tuple[str, ...]
    debug: bool
    admin_password: str | None
    problems: tuple[str, ...] = field(default=())


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def read_environment(env: Mapping[str, str] | None = None) -> Environment:
    """The environment as an `Environment`. Unset and empty mean the same: the default."""
    env = os.environ if env is None else env
    problems: list[str] = []

    def text(name: str) -> str | None:
        return env.get(name, "").strip() or None

    debug_text = (text("DEBUG") or "0").lower()
    if debug_text not in {"0", "1", "true", "false", "on", "off"}:
        problems.append(f"DEBUG is {debug_text!r}. Set it to 0 or 1.")
    turns = text("HERMES_TURNS") or "inline"
    if turns not in {"inline", "workers"}:
        problems.append(f"HERMES_TURNS is {turns!r}. Set it to inline or workers.")
    for name in ("HERMES_PUBLIC_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HERMES_LOCAL_URL"):
        value = text(name)
        if value and urlsplit(value).scheme not in {"http", "https"}:
            problems.append(f"{name} is {value!r}. Give a full URL that starts with http(s)://.")
    redis_url = text("REDIS_URL")
    if redis_url and urlsplit(redis_url).scheme not in {"redis", "rediss"}:
        problems.append("REDIS_URL must look like redis://HOST:PORT/DB.")
    data_dir = Path(text("HERMES_DATA_DIR") or "data")
    return Environment(
        data_dir=data_dir if data_dir.is_absolute() else BASE_DIR / data_dir,
        database_url=text("DATABASE_URL") or "",
        redis_url=redis_url,
        model=text("HERMES_MODEL"),
        public_url=text("HERMES_PUBLIC_URL"),
        turns=turns,
        local_url=text("HERMES_LOCAL_URL"),
        openai_api_key=text("OPENAI_API_KEY"),
        openai_base_url=text("OPENAI_BASE_URL"),
        anthropic_api_key=text("ANTHROPIC_API_KEY"),
        anthropic_base_url=text("ANTHROPIC_BASE_URL"),
        secret_key=text("SECRET_KEY"),
        allowed_hosts=_list(text("ALLOWED_HOSTS") or "localhost,127.0.0.1,[::1]"),
        csrf_trusted_origins=_list(text("CSRF_TRUSTED_ORIGINS") or ""),
        debug=debug_text in {"1", "true", "on"},
        admin_password=text("HERMES_ADMIN_PASSWORD"),
        problems=tuple(problems),
    )


DatabaseSettings = dict[str, dict[str, object]]

_SQLITE_SETUP: Final = (
    "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON;"
    "PRAGMA recursive_triggers=OFF;PRAGMA temp_store=MEMORY;"
)


def sqlite_databases(path: str) -> DatabaseSettings:
    """`default` (writes, IMMEDIATE) and `reader` (DEFERRED, query only) on one SQLite file."""

    def settings(options: dict[str, object]) -> dict[str, object]:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": path,
            "OPTIONS": {"timeout": 20, **options},
        }

    return {
        "default": settings({"transaction_mode": "IMMEDIATE", "init_command": _SQLITE_SETUP}),
        "reader": settings({"init_command": _SQLITE_SETUP + "PRAGMA query_only=1;"})
        | {"TEST": {"MIRROR": "default"}},
    }


def postgres_databases(url: str) -> DatabaseSettings:
    """One `default` alias with psycopg's pool: 8 connections for the web, 8 for turns."""
    parts = urlsplit(url)
    return {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parts.hostname or "",
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": 0,
            "OPTIONS": {
                "pool": {"min_size": 0, "max_size": 16, "timeout": 10},
                "connect_timeout": 5,
            },
        }
    }


def databases(env: Environment) -> DatabaseSettings:
    """Django's DATABASES for `DATABASE_URL`; an unset one means SQLite in the data directory."""
    url = env.database_url
    scheme = urlsplit(url).scheme
    if scheme in {"postgres", "postgresql"}:
        return postgres_databases(url)
    if scheme == "sqlite":
        path = Path(unquote(url.removeprefix("sqlite:///")))
        return sqlite_databases(str(path if path.is_absolute() else BASE_DIR / path))
    return sqlite_databases(str(env.data_dir / "hermes.sqlite3"))
