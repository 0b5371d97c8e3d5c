"""Where it happens: a group of workers, a PostgreSQL behind a bad network, a Redis of its own."""

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.toolbox.diary import DIARY
from tests.wire import Wire

ROOT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 180


def free_port() -> int:
    """One that nobody is given by chance until a server takes it: below the kernel's own."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Place:
    """`async with Place(...) as place:` serves at `url`; `token` opens its websocket.

    `config` is what differs from the gateway's own configuration.
    """

    def __init__(
        self, *, postgres: str, model_url: str, workers: int, folder: Path, **config: Any
    ) -> None:
        self._postgres, self._model_url, self._config = postgres, model_url, config
        self._workers, self._folder = workers, folder
        self._name = f"hermes_chaos_{os.getpid()}"
        self.database_url = urlunsplit(urlsplit(postgres)._replace(path=f"/{self._name}"))
        self.diary = folder.parent / "calls"
        """What the tools did."""
        self.redis_port = free_port()
        self._redis: subprocess.Popen[bytes] | None = None
        self.url = self.token = ""

    async def __aenter__(self) -> Self:
        """What was made is gone again when this raises."""
        async with AsyncExitStack() as made:
            await self._make(made)
            self._made = made.pop_all()
        return self

    async def _make(self, made: AsyncExitStack) -> None:
        self._order(f"CREATE DATABASE {self._name}")
        made.callback(self._order, f"DROP DATABASE IF EXISTS {self._name} WITH (FORCE)")
        self.start_redis()
        made.callback(self.kill_redis)
        parts = urlsplit(self.database_url)
        wire = Wire(parts.port or 5432, parts.hostname or "127.0.0.1")
        self.network = made.enter_context(wire)
        away = parts._replace(
            netloc=f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{self.network.port}"
        )
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "DATABASE_URL": urlunsplit(away),
            "REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "HERMES_DATA_DIR": str(self._folder),
            "OPENAI_BASE_URL": self._model_url,
            "OPENAI_API_KEY": "sk-chaos",
            "HERMES_MODEL": "openai:fake-1",
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            DIARY: str(self.diary),
            "HERMES_TEST_CONFIG": json.dumps(self._config),
        }
        self.log = made.enter_context((self._folder.parent / "serve.log").open("w+"))
        self._serve()
        made.push_async_callback(self._end)
        await self._look_around()
        with psycopg.connect(self.database_url, autocommit=True) as database:
            database.execute("UPDATE gateway_app_agentversion SET tools = 'look'")

    def _order(self, statement: str) -> None:
        with psycopg.connect(self._postgres, autocommit=True) as server:
            server.execute(statement)

    def _serve(self) -> None:
        command = ["manage.py", "serve", "--migrate", "--port", "0", "--workers"]
        self.served = subprocess.Popen(
            [sys.executable, *command, str(self._workers)],
            cwd=ROOT, env=self._environment, stdout=self.log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    async def _look_around(self) -> None:
        async with asyncio.timeout(START_S):
            while not (line := self._said("Hermes serves")):
                assert self.served.poll() is None, self.log_text()
                await asyncio.sleep(0.2)
        self.url = line.split()[-1]
        made = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "manage.py", "apitoken", "create", "admin"],
            cwd=ROOT, env=self._environment, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.token = made.stdout.split()[-1]

    def log_text(self) -> str:
        return Path(self.log.name).read_text(encoding="utf-8")

    def _said(self, start: str) -> str:
        lines = self.log_text().splitlines()
        return next((line for line in lines if line.startswith(start)), "")

    async def __aexit__(self, *_: object) -> None:
        await self._made.aclose()

    async def _end(self) -> None:
        self.network.mend()
        if self.served.poll() is None:
            self.served.terminate()
        try:
            self.exit_code = await asyncio.to_thread(self.served.wait, START_S)
        except subprocess.TimeoutExpired:
            self.served.kill()
            self.exit_code = self.served.wait()

    # --- what may die ---

    def workers(self) -> list[int]:
        """The pids of the workers that live now."""
        listed = Path(f"/proc/{self.served.pid}/task").glob("*/children")
        pids = [int(pid) for children in listed for pid in children.read_text().split()]
        return [pid for pid in pids if b"gateway_app.serving" in _command_line(pid)]

    def kill_worker(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def kill_redis(self) -> None:
        if self._redis is not None:
            self._redis.kill()
            self._redis.wait()
            self._redis = None

    def start_redis(self) -> None:
        self._redis = subprocess.Popen(
            ["redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1",
             "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
