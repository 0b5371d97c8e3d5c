"""The process environment, read once into one typed value.

Nothing else in the project reads `os.environ`. A bad value does not raise here: it is kept in
`problems`, so that `manage.py check` and `serve` can name every one of them and its mend.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from hermes_site.environment_problems import TRUE, bad_database, bad_public, problems_of

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

    def text(name: str) -> str | None:
        return env.get(name, "").strip() or None

    data_dir = Path(text("HERMES_DATA_DIR") or "data")
    public_url = text("HERMES_PUBLIC_URL")
    return Environment(
        data_dir=data_dir if data_dir.is_absolute() else BASE_DIR / data_dir,
        database_url=text("DATABASE_URL") or "",
        redis_url=text("REDIS_URL"),
        model=text("HERMES_MODEL"),
        public_url=None if bad_public(public_url) else public_url,
        turns=text("HERMES_TURNS") or "inline",
        local_url=text("HERMES_LOCAL_URL"),
        openai_api_key=text("OPENAI_API_KEY"),
        openai_base_url=text("OPENAI_BASE_URL"),
        anthropic_api_key=text("ANTHROPIC_API_KEY"),
        anthropic_base_url=text("ANTHROPIC_BASE_URL"),
        secret_key=text("SECRET_KEY"),
        allowed_hosts=_list(text("ALLOWED_HOSTS") or "localhost,127.0.0.1,[::1]"),
        csrf_trusted_origins=_list(text("CSRF_TRUSTED_ORIGINS") or ""),
        debug=(text("DEBUG") or "").lower() in TRUE,
        admin_password=text("HERMES_ADMIN_PASSWORD"),
        problems=tuple(problems_of(text)),
    )


DatabaseSettings = dict[str, dict[str, object]]

WAL_REST_BYTES: Final = 64 * 1024 * 1024
"""What the write-ahead log may keep of the disk after a moment in which it was larger."""

_SQLITE_SETUP: Final = (
    "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON;"
    "PRAGMA recursive_triggers=OFF;PRAGMA temp_store=MEMORY;"
    "PRAGMA secure_delete=ON;"  # what is purged is overwritten
    f"PRAGMA journal_size_limit={WAL_REST_BYTES};"
)


def sqlite_databases(path: str) -> DatabaseSettings:
    """`default` (writes, IMMEDIATE) and `reader` (DEFERRED, query only) on one SQLite file."""

    def settings(options: dict[str, object]) -> dict[str, object]:
        return {
            "ENGINE": "sessions_app.sqlite",
            "NAME": path,
            "OPTIONS": {"timeout": 20, **options},
        }

    return {
        "default": settings({"transaction_mode": "IMMEDIATE", "init_command": _SQLITE_SETUP}),
        "reader": settings({"init_command": _SQLITE_SETUP + "PRAGMA query_only=1;"})
        | {"TEST": {"MIRROR": "default"}},
    }


def postgres_databases(url: str) -> DatabaseSettings:
    """One `default` alias with psycopg's pool: 8 connections for pages, 8 for turns, 16 for tools.

    Tools that hang keep theirs, and must not take those of the web. As the server has few for all
    of its processes, one that is not needed is let go of: one each `max_idle` seconds.
    """
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
            "CONN_HEALTH_CHECKS": True,  # the pool gives out none that the server has ended
            "OPTIONS": {
                # reconnect_timeout: psycopg doubles its pauses, and after a long absence of the
                # server would sleep for minutes; given up, the next call tries anew
                "pool": {
                    "min_size": 0,
                    "max_size": 32,
                    "max_idle": 5,
                    "timeout": 10,
                    "reconnect_timeout": 5,
                },
                "connect_timeout": 5,
                # prepared statements: what a turn runs is planned once a connection
                "server_side_binding": True,
                "prepare_threshold": 3,
                **dict(parse_qsl(parts.query)),
            },
        }
    }


def databases(env: Environment) -> DatabaseSettings:
    """Django's DATABASES for `DATABASE_URL`; an unset one means SQLite in the data directory.

    So does one that cannot be read: then `problems` keeps everything from starting.
    """
    url = "" if bad_database(env.database_url) else env.database_url
    scheme = urlsplit(url).scheme
    if scheme in {"postgres", "postgresql"}:
        return postgres_databases(url)
    if scheme == "sqlite":
        path = Path(unquote(url.removeprefix("sqlite:///")))
        return sqlite_databases(str(path if path.is_absolute() else BASE_DIR / path))
    return sqlite_databases(str(env.data_dir / "hermes.sqlite3"))
