"""The environment: defaults, and one sentence with a mend for every bad value."""

from pathlib import Path
from typing import Any

import pytest
from django.core import checks

from hermes_site.environment import BASE_DIR, databases, read_environment
from hermes_site.secret_key import kept_secret_key


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
        ("OPENAI_BASE_URL", "sk-something-secret", "http(s)://HOST"),
        ("ANTHROPIC_BASE_URL", "ftp://host", "http(s)://HOST"),
        ("HERMES_LOCAL_URL", "http://", "http(s)://HOST"),
        ("REDIS_URL", "127.0.0.1:6379", "redis://HOST:PORT/DB"),
        ("DATABASE_URL", "mysql://host/name", "postgres://USER@HOST/NAME"),
        ("DATABASE_URL", "postgres://user:secret@host:port/name", "postgres://USER@HOST/NAME"),
        ("DATABASE_URL", "postgres://user:secret@host", "postgres://USER@HOST/NAME"),
        ("DATABASE_URL", "sqlite:///", "sqlite:///PATH"),
        ("HERMES_MODEL", "gpt", "PROVIDER:MODEL"),
        ("HERMES_MODEL", ":gpt", "PROVIDER:MODEL"),
    ],
)
def test_it_names_a_bad_value_and_its_mend(name: str, value: str, mend: str) -> None:
    env = read_environment({name: value})
    [problem] = env.problems
    assert name in problem
    assert mend in problem
    assert "secret" not in problem
    assert databases(env)


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
