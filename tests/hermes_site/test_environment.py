"""The environment: defaults, and one sentence with a mend for every bad value."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import checks
from hypothesis import given
from hypothesis import strategies as st

from hermes_site.environment import BASE_DIR, databases, read_environment
from hermes_site.environment_problems import bad_public
from hermes_site.secret_key import kept_secret_key
from tests.gateway_app.serving.conftest import manage


def test_it_has_a_default_for_everything() -> None:
    env = read_environment({})
    assert env.problems == ()
    assert env.data_dir == BASE_DIR / "data"
    assert env.allowed_hosts == ("localhost", "127.0.0.1", "[::1]")
    assert (env.debug, env.turns, env.redis_url, env.model) == (False, "inline", None, None)
    assert databases(env)["default"]["NAME"] == str(BASE_DIR / "data" / "hermes.sqlite3")


def test_it_takes_an_empty_variable_for_an_unset_one() -> None:
    names = ("DATABASE_URL", "REDIS_URL", "HERMES_MODEL", "DEBUG", "HERMES_DATA_DIR", "SECRET_KEY")
    assert read_environment(dict.fromkeys(names, " ")) == read_environment({})


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("DEBUG", "perhaps", "Set it to 0 or 1"),
        ("HERMES_TURNS", "elsewhere", "inline or workers"),
        ("HERMES_PUBLIC_URL", "chat.example.org", "http(s)://HOST"),
        ("HERMES_PUBLIC_URL", "https://[::1", "http(s)://HOST"),
        ("HERMES_PUBLIC_URL", "https://host:port", "http(s)://HOST"),
        ("OPENAI_BASE_URL", "sk-something-secret", "http(s)://HOST/v1, or http(s)://HOST:PORT/v1."),
        ("ANTHROPIC_BASE_URL", "ftp://host", "http(s)://HOST"),
        ("HERMES_LOCAL_URL", "http://", "http(s)://HOST"),
        ("REDIS_URL", "127.0.0.1:6379", "redis://HOST:PORT/DB"),
        ("DATABASE_URL", "mysql://host/name", "postgres://USER@HOST/NAME"),
        ("DATABASE_URL", "postgres://user:secret@host:port/name", "postgres://USER@HOST/NAME"),
        ("DATABASE_URL", "postgres://user:secret@host", "postgres://USER@HOST/NAME"),
        ("DATABASE_URL", "sqlite:///", "sqlite:///PATH"),
        ("HERMES_MODEL", "gpt", "PROVIDER:MODEL"),
        ("HERMES_MODEL", ":gpt", "PROVIDER:MODEL"),
        ("HERMES_PUBLIC_URL", "http://a b", "http(s)://HOST"),
        ("HERMES_PUBLIC_URL", "https://ann:secret@chat.example", "http(s)://HOST"),
        ("HERMES_PUBLIC_URL", "https://chat.example/hermes?x=1", "http(s)://HOST"),
        ("HERMES_PUBLIC_URL", "http://*", "http(s)://HOST"),
        ("REDIS_URL", "redis://:secret@host/first", "redis://HOST:PORT/DB"),
        ("OPENAI_API_KEY", "sk secret", "Copy the key again"),
        ("OPENAI_API_KEY", "sk-\nsecret", "Copy the key again"),
        ("ANTHROPIC_API_KEY", "sk-é-secret", "Copy the key again"),
        ("SECRET_KEY", "secret", "32 random characters"),
        ("ALLOWED_HOSTS", "localhost,http://chat.example/", "host names alone"),
        ("CSRF_TRUSTED_ORIGINS", "chat.example", "in full, such as https://chat.example."),
    ],
)
def test_it_names_a_bad_value_and_its_mend(name: str, value: str, mend: str) -> None:
    env = read_environment({name: value})
    [problem] = env.problems
    assert name in problem
    assert mend in problem
    assert "secret" not in problem
    assert databases(env)
    assert not bad_public(env.public_url)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HERMES_PUBLIC_URL", "https://chat.example/"),
        ("HERMES_PUBLIC_URL", "http://[::1]:8000"),
        ("HERMES_PUBLIC_URL", "http://bücher.example"),
        ("OPENAI_BASE_URL", "http://my_host:11434/v1"),
        ("REDIS_URL", "rediss://:p%40w@host:6379/0"),
        ("REDIS_URL", "redis://host"),
        ("ALLOWED_HOSTS", "*, .chat.example,[::1],127.0.0.1"),
        ("CSRF_TRUSTED_ORIGINS", "https://*.chat.example"),
    ],
)
def test_it_takes_every_good_value(name: str, value: str) -> None:
    assert read_environment({name: value}).problems == ()


VARIABLES = (
    "DATABASE_URL", "REDIS_URL", "HERMES_MODEL", "HERMES_DATA_DIR", "HERMES_PUBLIC_URL",
    "HERMES_TURNS", "HERMES_LOCAL_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL", "SECRET_KEY", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "DEBUG",
    "HERMES_ADMIN_PASSWORD",
)  # fmt: skip


SCHEMES = ("http", "https", "postgres", "sqlite", "redis", "x")
TEXTS = st.text(max_size=30)
URLS = st.builds("{}://{}".format, st.sampled_from(SCHEMES), TEXTS)


@given(st.dictionaries(st.sampled_from(VARIABLES), TEXTS | URLS))
def test_it_reads_whatever_is_set(values: dict[str, str]) -> None:
    env = read_environment(values)
    assert databases(env)
    urlsplit(env.public_url or "")


@pytest.mark.parametrize("value", ["x", "http://[::1", "://", "postgres://a:b@c:d/e", "\u2028é"])
def test_it_ends_no_command_in_a_traceback(value: str, tmp_path: Path) -> None:
    """The whole of Django starts with every variable wrong, and says so in sentences."""
    wrong = {name: value for name in VARIABLES if name != "HERMES_DATA_DIR"}
    done = manage(tmp_path, "check", **wrong)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert done.stdout.count("hermes_site.E001") >= 5, done.stdout


def test_it_names_every_bad_value_at_once() -> None:
    assert (
        len(read_environment({"DEBUG": "x", "HERMES_TURNS": "x", "REDIS_URL": "x"}).problems) == 3
    )


def test_it_stops_every_command_by_a_system_check(settings: Any) -> None:
    settings.ENVIRONMENT = read_environment({"DEBUG": "perhaps"})
    found = [error.msg for error in checks.run_checks() if error.id == "hermes_site.E001"]
    assert found == ["DEBUG is 'perhaps'. Set it to 0 or 1."]


def test_it_reads_a_postgres_url_with_its_options() -> None:
    url = "postgresql://an%40n:p%2Fw@db.example:6543/her%20mes?sslmode=require"
    default = databases(read_environment({"DATABASE_URL": url}))["default"]
    assert (default["NAME"], default["USER"], default["PASSWORD"]) == ("her mes", "an@n", "p/w")
    assert (default["HOST"], default["PORT"]) == ("db.example", "6543")
    assert default["OPTIONS"]["sslmode"] == "require"  # type: ignore[index]


def test_it_reads_sqlite_paths_against_the_project(tmp_path: Path) -> None:
    def name(url: str) -> object:
        return databases(read_environment({"DATABASE_URL": url}))["default"]["NAME"]

    assert name("sqlite:///some/where.db") == str(BASE_DIR / "some" / "where.db")
    assert name(f"sqlite:///{tmp_path}/x.db") == f"{tmp_path}/x.db"


def test_it_keeps_one_secret_key_for_its_owner_only(tmp_path: Path) -> None:
    key = kept_secret_key(tmp_path / "data")
    file = tmp_path / "data" / "secret_key"
    assert len(key) >= 50
    assert kept_secret_key(tmp_path / "data") == key == file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert list(file.parent.iterdir()) == [file]


def test_it_makes_a_secret_key_anew_where_the_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()
    assert len(kept_secret_key(tmp_path)) >= 50
    assert list(tmp_path.iterdir()) == [tmp_path / "secret_key"]


def test_it_checks_that_the_data_directory_takes_files(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    data_dir = tmp_path / "file" / "data"
    assert len(kept_secret_key(data_dir)) >= 50
    settings.ENVIRONMENT = read_environment({"HERMES_DATA_DIR": str(data_dir)})
    [found] = [error for error in checks.run_checks() if error.id == "hermes_site.E002"]
    assert str(data_dir) in found.msg
    assert "HERMES_DATA_DIR" in str(found.hint)
