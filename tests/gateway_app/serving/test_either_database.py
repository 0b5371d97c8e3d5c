"""A database that is newer, older or read-only, of whichever kind: a server says so and ends."""

import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection

from tests.gateway_app.serving.conftest import Served, Site

WITHOUT_RIGHTS = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0);"
    " os.execv(sys.executable, [sys.executable, 'manage.py', *sys.argv[1:]])"
)
"""Even root may not write what is read-only then: PR_CAPBSET_DROP, CAP_DAC_OVERRIDE."""
NEWER = (
    "INSERT INTO django_migrations (app, name, applied)"
    " VALUES ('sessions_app', '9999_later', '2030-01-01')"
)
ADMIN_WITH_PASSWORD = (
    "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,"
    " last_name, email, date_joined) VALUES ('admin', 'x', {0}, {0}, {0}, '', '', '', '2030-01-01')"
)


def run_sql(url: str, statement: str) -> None:
    """On either kind of database."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute(statement)
            database.commit()
    else:
        with psycopg.connect(url, autocommit=True) as database:
            database.execute(statement)


@pytest.fixture
def ready_url(empty_site: Site, database_url: str) -> str:
    """A database with every table, of the kind that this test run uses."""
    empty_site.data_dir.mkdir()
    done = empty_site.manage("migrate", "--verbosity", "0", DATABASE_URL=database_url)
    assert done.returncode == 0, done.stdout
    return database_url


def refused(site: Site, *args: str, url: str) -> str:
    """What a `serve` says that does not start: no traceback."""
    program = ["-c", WITHOUT_RIGHTS, "serve", "--port", "0", *args]
    served = site.keep(Served(site.data_dir, *program, DATABASE_URL=url))
    assert served.rest() == 1
    said = "\n".join(served.said)
    assert "Traceback" not in said, said
    return said


def test_it_refuses_a_database_that_is_newer(empty_site: Site, ready_url: str) -> None:
    run_sql(ready_url, NEWER)
    for args in ([], ["--migrate"]):
        assert "newer than this version" in refused(empty_site, *args, url=ready_url)


def test_it_refuses_a_database_that_lacks_a_migration(empty_site: Site, ready_url: str) -> None:
    run_sql(ready_url, "DELETE FROM django_migrations WHERE app = 'sessions'")
    assert "python manage.py migrate" in refused(empty_site, url=ready_url)


@pytest.mark.parametrize(("new", "args"), [(True, ["--migrate"]), (False, [])])
def test_it_refuses_a_database_that_it_may_not_write(
    empty_site: Site, ready_url: str, new: bool, args: list[str]
) -> None:
    """Also where nothing is to be written at the start."""
    if not new:
        true = "1" if connection.vendor == "sqlite" else "true"
        run_sql(ready_url, ADMIN_WITH_PASSWORD.format(true))
    if connection.vendor == "sqlite":
        (empty_site.data_dir.parent / "own.sqlite3").chmod(0o444)
    else:
        name = urlsplit(ready_url).path.removeprefix("/")
        run_sql(ready_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "cannot be written" in refused(empty_site, *args, url=ready_url)
