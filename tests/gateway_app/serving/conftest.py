"""A site in a directory of its own, run by real `manage.py` processes on a SQLite file."""

import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2
import psycopg
import pytest
from django.db import connection
from websockets import ConnectionClosed, Subprotocol
from websockets.sync.client import connect

from gateway_app.credentials import SHOWN_CHARACTERS, TOKEN_PREFIX

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 300
"""As long as a server may live, and as anything may take, on a busy machine."""


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    """The environment of a site: nothing of the test run's own configuration."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return (
        kept | {"HERMES_DATA_DIR": str(data_dir), "PYTHONWARNINGS": "error::ResourceWarning"} | more
    )


def manage(data_dir: Path, *args: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """One finished `manage.py` command, stdout and stderr joined."""
    return subprocess.run(
        [sys.executable, "manage.py", *args],
        cwd=ROOT,
        env=environment(data_dir, **env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


class Served:
    """A running server; `said` are its lines so far, `url` where it answers."""

    url: str

    def __init__(
        self, data_dir: Path, *command: str, inherit: tuple[int, ...] = (), **env: str
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment(data_dir, **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=inherit,
        )
        self.said: list[str] = []
        self.watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        self.watchdog.start()

    def allow(self, patience_s: float) -> None:
        """The process is killed only if it lives so long from now."""
        self.watchdog.cancel()
        self.watchdog = threading.Timer(patience_s, self.process.kill)
        self.watchdog.start()

    def read_until(self, start: str) -> str:
        """The next line that begins so. Fails if the process ends before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if line.startswith(start):
                return line.rstrip("\n")
        raise AssertionError("\n".join(self.said))

    def ready(self) -> "Served":
        self.url = self.read_until("Hermes serves").split()[-1]
        return self

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return httpx2.get(self.url + path, timeout=PATIENCE_S, **options)

    def post(self, path: str, header: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON that answers a JSON body; `header` is one more, as `Name: value`."""
        name, _, value = header.partition(": ")
        answer = httpx2.post(self.url + path, json=body, headers={name: value}, timeout=PATIENCE_S)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signals, then waits for the end; the exit code."""
        self.process.send_signal(number)
        return self.rest()

    def rest(self) -> int:
        assert self.process.stdout is not None
        self.said += [line.rstrip("\n") for line in self.process.stdout]
        return self.process.wait()

    def close(self) -> None:
        self.watchdog.cancel()
        if self.process.poll() is None:
            self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait()


class Tab:
    """A websocket of a running server, as a program or a page opens it."""

    def __init__(
        self,
        served: Served,
        path: str = "/ws/v1/",
        *,
        sock: socket.socket | None = None,
        **headers: str,
    ) -> None:
        self.connecting = connect(
            served.url.replace("http", "ws", 1) + path,
            subprotocols=[Subprotocol("hermes.v1")],
            additional_headers=headers,
            sock=sock,
            proxy=None,
            max_size=None,
            open_timeout=PATIENCE_S,
            ping_interval=None,
        )
        self.frames: list[dict[str, Any]] = []

    def __enter__(self) -> "Tab":
        self.socket = self.connecting.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.connecting.__exit__(*raised)

    def send(self, kind: str, **fields: Any) -> None:
        """One command, its type being its id."""
        self.socket.send(json.dumps({"id": kind, "type": kind, **fields}))

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next frame that is wanted. Raises ConnectionClosed if none comes."""
        while True:
            frame: dict[str, Any] = json.loads(self.socket.recv(timeout=PATIENCE_S))
            self.frames.append(frame)
            if wanted(frame):
                return frame

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        """One command; its reply."""
        self.send(kind, **fields)
        return self.until(lambda frame: frame.get("re") == kind)

    def event(self, kind: str) -> dict[str, Any]:
        frame = self.until(lambda frame: frame.get("event", {}).get("type") == kind)
        event: dict[str, Any] = frame["event"]
        return event

    def close_code(self) -> int | None:
        """Reads to the end; the code with which the server closed."""
        try:
            self.until(lambda _: False)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


class Site:
    """A data directory and what is run on it."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.file = data_dir / "hermes.sqlite3"
        self.running: list[Served] = []

    def manage(self, *args: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return manage(self.data_dir, *args, **env)

    def start(self, *args: str, **env: str) -> Served:
        """`serve` on any free port."""
        return self.keep(Served(self.data_dir, "manage.py", "serve", "--port", "0", *args, **env))

    def keep(self, served: Served) -> Served:
        """Ended after the test, whatever happens."""
        self.running.append(served)
        return served

    def token(self) -> str:
        """A new API token of the user `admin`, who is made if need be."""
        self.sql(
            "INSERT OR IGNORE INTO auth_user (username, password, is_superuser, is_staff,"
            " is_active, first_name, last_name, email, date_joined)"
            " VALUES ('admin', '!', 1, 1, 1, '', '', '', '2030-01-01')"
        )
        text = TOKEN_PREFIX + secrets.token_urlsafe(32)
        self.sql(
            "INSERT INTO gateway_app_apitoken (user_id, name, prefix, hash)"
            " SELECT id, '', ?, ? FROM auth_user WHERE username = 'admin'",
            text[:SHOWN_CHARACTERS],
            hashlib.sha256(text.encode()).hexdigest(),
        )
        return text

    def sql(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file, timeout=PATIENCE_S)) as database:
            rows = database.execute(statement, params).fetchall()
            database.commit()
        return rows


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, to copy."""
    data_dir = tmp_path_factory.mktemp("migrated")
    done = manage(data_dir, "migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stdout
    return data_dir / "hermes.sqlite3"


@pytest.fixture
def empty_site(tmp_path: Path) -> Iterator[Site]:
    """A site before its first migration."""
    site = Site(tmp_path / "data")
    yield site
    for served in site.running:
        served.close()


@pytest.fixture
def site(empty_site: Site, migrated: Path) -> Site:
    """A migrated site without users."""
    empty_site.data_dir.mkdir()
    shutil.copyfile(migrated, empty_site.file)
    return empty_site


@pytest.fixture
def database_url(tmp_path: Path) -> Iterator[str]:
    """An empty database on the kind of server that this test run uses."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path}/own.sqlite3"
        return
    with postgres_database() as url:
        yield url


@contextmanager
def postgres_database() -> Iterator[str]:
    """An empty database on the server of this test run."""
    url = urlsplit(os.environ["DATABASE_URL"])
    name = f"hermes_serve_{os.getpid()}"
    server = urlunsplit(url._replace(path="/postgres"))
    with psycopg.connect(server, autocommit=True) as postgres:
        postgres.execute(f"CREATE DATABASE {name}")
        yield urlunsplit(url._replace(path=f"/{name}"))
        postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")
