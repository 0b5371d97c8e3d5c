"""The programs that are measured, each on a port of its own, gone when the block ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg

ROOT = Path(__file__).resolve().parent.parent
START_S = 60
SCENARIO_S = 120


@dataclass(frozen=True)
class Target:
    """Something to send turns to; `pid` is the process whose CPU counts."""

    name: str
    url: str
    pid: int
    tokens: tuple[str, ...] = ()

    def load(self, scenario: str, **order: Any) -> Any:
        """The figures of one scenario, measured by a load client in a process of its own."""
        order |= {"scenario": scenario, "target": self.name, "url": self.url}
        order |= {"pid": self.pid, "tokens": self.tokens}
        return run_json(["-m", "bench.load", json.dumps(order)])


def run_json(command: list[str], env: dict[str, str] | None = None) -> Any:
    """What a program of ours printed, decoded."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        timeout=SCENARIO_S,
        check=True,
    )
    return json.loads(done.stdout)


@contextmanager
def running(
    command: list[str], ready: str = "", env: dict[str, str] | None = None
) -> Iterator[tuple[int, str]]:
    """A program's pid and its first line that holds `ready`, if that is given."""
    program = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert program.stdout is not None
        line = next((line for line in program.stdout if ready in line), None) if ready else ""
        if line is None:
            raise SystemExit(f"{' '.join(command)} did not start.")
        yield program.pid, line.strip()
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(START_S)


@contextmanager
def model_server() -> Iterator[Target]:
    """The model; asked by a direct client."""
    with running(["-m", "bench.model_server"], "http://") as (pid, url):
        yield Target("direct", url, pid)


@contextmanager
def relay(model_url: str, client: str) -> Iterator[Target]:
    """The bare relay, once it accepts connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "daphne", "-p", str(port), "-v", "0", "bench.relay:application"]
    with running(command, env={"MODEL_URL": model_url, "RELAY_CLIENT": client}) as (pid, _):
        until = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise SystemExit("The relay did not start.") from None
                time.sleep(0.1)
        yield Target("relay", f"ws://127.0.0.1:{port}/", pid)


def hermes_environment(folder: Path, model_url: str, **more: str) -> dict[str, str]:
    """The environment of a Hermes of its own: its data in `folder`, its model on loopback."""
    names = ("DATABASE_URL", "REDIS_URL", "HERMES_PUBLIC_URL", "HERMES_TURNS", "DEBUG")
    return {
        **dict.fromkeys(names, ""),
        "HERMES_DATA_DIR": str(folder),
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "bench",
        "HERMES_MODEL": "openai:t200",
        "DJANGO_SETTINGS_MODULE": "hermes_site.settings",
        **more,
    }


@contextmanager
def scratch_database(url: str) -> Iterator[str]:
    """The URL of a new database on that PostgreSQL server; it is dropped at the end."""
    name = f"hermes_bench_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


PEOPLE: Final = 150
"""As many as ever write at the same time: each turn is told to all other sockets of its person."""
_MAKE_PEOPLE: Final = f"""
from django.contrib.auth.models import User
from gateway_app.credentials import create_token
for number in range({PEOPLE}):
    user, _ = User.objects.get_or_create(username=f"person{{number}}")
    print("token", create_token(user=user, name="bench"))
"""


@contextmanager
def hermes(env: dict[str, str]) -> Iterator[Target]:
    """Hermes as `serve` runs it, and an API token of each person who uses it."""
    command = ["manage.py", "serve", "--port", "0", "--migrate"]
    with running(command, "Hermes serves", env) as (pid, line):
        made = subprocess.run(
            [sys.executable, "manage.py", "shell", "--command", _MAKE_PEOPLE],
            cwd=ROOT, env={**os.environ, **env}, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        said = map(str.split, made.stdout.splitlines())
        tokens = tuple(words[1] for words in said if words[:1] == ["token"])
        port = line.rpartition(":")[2]
        yield Target("hermes", f"ws://127.0.0.1:{port}/ws/v1/", pid, tokens)
