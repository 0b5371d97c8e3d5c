"""`manage.py serve` as a process: what it prints, what it refuses, how it ends."""

import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from django.db import connection

from tests.gateway_app.serving.conftest import PATIENCE_S, Site


@contextmanager
def logged_in(address: str) -> Iterator[httpx2.Client]:
    """A browser that opened the link and pressed its button."""
    origin = address.split("/login/")[0]
    with httpx2.Client(base_url=origin, timeout=PATIENCE_S) as browser:
        assert browser.get(address).status_code == 200
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        answer = browser.post(address, data=form, headers={"Origin": origin})
        assert (answer.status_code, answer.headers["Location"]) == (302, "/")
        yield browser


def test_it_serves_a_new_installation_and_ends_in_a_login_link(empty_site: Site) -> None:
    served = empty_site.start("--migrate").ready()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", served.url)
    assert str(empty_site.file) in served.read_until("Database:")
    served.read_until("Log in as admin")
    link = served.read_until("http")
    with logged_in(link) as browser:
        assert browser.get("/api/v1/me").json()["name"] == "admin"
        assert browser.get("/admin/").status_code == 200
        page = browser.get("/accounts/password/").text
        for sheet in re.findall(r'<link rel="stylesheet" href="([^"]+)"', page):
            answer = browser.get(sheet)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["Cache-Control"]
    assert httpx2.get(link, timeout=PATIENCE_S).status_code == 410
    assert served.get("/healthz").json() == {"status": "ok"}
    ready = served.get("/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert served.end() == 0
    assert not any("Traceback" in line for line in served.said), served.said


def test_it_prints_a_link_at_each_start_until_there_is_a_password(site: Site) -> None:
    links = []
    for _ in range(2):
        served = site.start().ready()
        served.read_until("Log in as admin")
        links.append(served.read_until("http"))
        assert served.end() == 0
    assert links[0] != links[1]
    served = site.start(HERMES_ADMIN_PASSWORD="three warm feathers").ready()
    assert served.end() == 0
    assert not any("/login/" in line for line in served.said)
    [(password,)] = site.sql("SELECT password FROM auth_user")
    assert not password.startswith("!")


def test_it_prints_the_public_address(site: Site) -> None:
    served = site.start(HERMES_PUBLIC_URL="https://chat.example/").ready()
    assert served.url == "https://chat.example"
    assert served.read_until("https://").startswith("https://chat.example/login/")


def test_it_makes_login_links_of_the_port_that_was_served_last(site: Site) -> None:
    site.token()
    assert "http://127.0.0.1:8000/login/" in site.manage("loginlink", "admin").stdout
    served = site.start().ready()
    assert f"{served.url}/login/" in site.manage("loginlink", "admin").stdout
    assert served.end() == 0
    assert f"{served.url}/login/" in site.manage("loginlink", "admin").stdout
    public = {"HERMES_PUBLIC_URL": "https://chat.example"}
    assert "https://chat.example/login/" in site.manage("loginlink", "admin", **public).stdout


def test_it_says_that_its_own_host_is_not_allowed(site: Site) -> None:
    served = site.start(ALLOWED_HOSTS="chat.example").ready()
    assert "HERMES_PUBLIC_URL" in served.read_until("ALLOWED_HOSTS lacks")
    assert served.get("/api/v1/me").status_code == 400
    assert served.get("/api/v1/me", headers={"Host": "chat.example"}).status_code == 401


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_well_however_often_it_is_told(site: Site, number: int) -> None:
    served = site.start().ready()
    for _ in range(3):
        served.process.send_signal(number)
    assert served.rest() == 0
    assert not any("Traceback" in line for line in served.said), served.said


def test_it_keeps_migrations_away_while_it_serves(site: Site) -> None:
    served = site.start().ready()
    refused = site.manage("migrate")
    assert refused.returncode == 1
    assert "Stop `manage.py serve` first" in refused.stdout
    assert served.end() == 0
    assert site.manage("migrate").returncode == 0


def test_it_lets_one_serve_a_file_when_two_start_together(empty_site: Site) -> None:
    both = [empty_site.start("--migrate") for _ in range(2)]
    ends = []
    for served in both:
        try:
            assert served.ready().get("/readyz").json()["ready"]
        except AssertionError:  # it ended before it served
            assert "already serves" in served.said[-1]
        else:
            served.process.send_signal(signal.SIGTERM)
        ends.append(served.rest())
        assert not any("Traceback" in line for line in served.said), served.said
    assert sorted(ends) == [0, 1]


def test_it_serves_a_file_again_as_soon_as_its_server_was_killed(site: Site) -> None:
    first = site.start().ready()
    said = refused(site)
    assert str(site.file) in said
    assert "REDIS_URL" in said
    first.process.kill()
    first.process.wait()
    assert site.start().ready().get("/readyz").json()["ready"]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="a file has one server")
def test_it_migrates_once_when_two_start_together(empty_site: Site, database_url: str) -> None:
    both = [empty_site.start("--migrate", DATABASE_URL=database_url) for _ in range(2)]
    for served in both:
        parts = served.ready().get("/readyz").json()
        assert parts["ready"], parts
    assert [served.end() for served in both] == [0, 0]
    for served in both:
        assert not any("Traceback" in line for line in served.said), served.said


def refused(site: Site, *args: str, **env: str) -> str:
    """The one sentence of a `serve` that did not start."""
    done = site.manage("serve", "--port", "0", *args, **env)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("args", "env", "mend"),
    [
        (["--workers", "0"], {}, "Set --workers to 1 or more"),
        (["--workers", "2"], {}, "Set REDIS_URL"),
        ([], {"HERMES_TURNS": "workers"}, "Set REDIS_URL"),
        ([], {"DEBUG": "perhaps"}, "Set it to 0 or 1"),
        ([], {"HERMES_MODEL": "nobody:x"}, "Known are: openai, anthropic, local"),
        ([], {"HERMES_MODEL": "openai:x"}, "Set OPENAI_API_KEY"),
        ([], {"HERMES_LOCAL_URL": "http://127.0.0.1:1"}, "or unset it"),
        ([], {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}, "made: createdb none"),
        ([], {"DATABASE_URL": "sqlite:////nowhere/x.sqlite3"}, "Make the folder /nowhere, or"),
        ([], {"DATABASE_URL": "sqlite:////etc/hosts"}, "not a database. Restore a backup"),
        ([], {"REDIS_URL": "redis://127.0.0.1:1/0"}, "Check REDIS_URL"),
        (["--host", "0.0.0.0"], {}, "SECRET_KEY must be set"),
        (["--host", "::"], {}, "SECRET_KEY must be set"),
        (["--host", "0.0.0.0"], {"SECRET_KEY": "x" * 50, "ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS"),
        (["--host", "192.0.2.1"], {"SECRET_KEY": "x" * 50}, "Choose another --host or --port"),
    ],
)
def test_it_refuses_what_cannot_work_in_one_sentence(
    site: Site, args: list[str], env: dict[str, str], mend: str
) -> None:
    assert mend in refused(site, *args, **env)


def test_it_refuses_a_port_that_is_taken(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"127.0.0.1:{port}" in refused(site, "--port", port)


def test_it_refuses_what_is_no_port(site: Site) -> None:
    for port in ("99999", "-1", "http"):
        done = site.manage("serve", f"--port={port}")
        assert done.returncode == 2
        assert "Choose a number from 0 to 65535" in done.stdout


def test_it_refuses_a_data_directory_that_takes_no_files(empty_site: Site) -> None:
    empty_site.data_dir.write_text("in the way")
    said = refused(empty_site)
    assert str(empty_site.data_dir) in said
    assert "HERMES_DATA_DIR" in said


def test_it_refuses_a_database_that_lacks_migrations_or_backs_it_up_and_migrates(
    site: Site,
) -> None:
    site.sql("DELETE FROM django_migrations WHERE app = 'sessions'")
    site.sql("DROP TABLE django_session")
    assert "python manage.py migrate" in refused(site)
    assert site.start("--migrate").ready().get("/readyz").status_code == 200
    assert len(list((site.data_dir / "backups").iterdir())) == 1


def test_it_refuses_a_database_that_is_newer(site: Site) -> None:
    site.sql(
        "INSERT INTO django_migrations (app, name, applied)"
        " VALUES ('gateway_app', '9999_later', '2030-01-01')"
    )
    for args in ([], ["--migrate"]):
        said = refused(site, *args)
        assert "newer than this version" in said
        assert "gateway_app.9999_later" in said


def test_it_refuses_a_clock_that_is_not_in_place_until_it_is_mended(site: Site) -> None:
    site.sql("DROP TRIGGER hermes_message_change")
    said = refused(site)
    assert "hermes_message_change" in said
    assert "python manage.py migrate" in said
    served = site.start("--migrate").ready()
    assert served.get("/readyz").json()["clock"] == "ok"


def test_it_says_which_part_is_not_ready(site: Site) -> None:
    served = site.start().ready()
    site.sql("DROP TRIGGER hermes_message_change")
    answer = served.get("/readyz")
    assert answer.status_code == 503
    parts: dict[str, Any] = answer.json()
    assert parts.pop("ready") is False
    assert parts.pop("draining") is False
    assert "python manage.py migrate" in parts.pop("clock")
    assert set(parts.values()) == {"ok"}
