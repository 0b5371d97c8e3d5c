"""The product as people start it, `manage.py serve`, in a process and a folder of its own."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Final, Self

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PASSWORD: Final = "a long enough secret"
START_S: Final = 180
STOP_S: Final = 120
_SERVES: Final = re.compile(r"Hermes serves (http://\S+)")


class Served:
    """One `serve`; `url` and `port` are known once it is entered. Its user is admin, PASSWORD."""

    def __init__(
        self, folder: Path, model_url: str, *, port: int = 0, model: str = "fake-1", **more: str
    ) -> None:
        self.database = folder / "hermes.sqlite3"
        self._folder, self._model_url, self._port = folder, model_url, port
        self._lines: Queue[str | None] = Queue()
        self._model, self._more = model, more
        self.said: list[str] = []
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "manage.py", "serve", "--migrate", "--port", str(self._port)]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.url = self._wait_for_address()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def stop(self) -> None:
        """Ends as a deploy would end it: SIGTERM, and the time to drain."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def tell_to_stop(self) -> None:
        """SIGTERM, without waiting for the end."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        return self._process.wait(STOP_S)

    def kill(self) -> None:
        """Ends as a crash would end it."""
        self._process.kill()
        self._process.wait()

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return kept | {
            "HERMES_DATA_DIR": str(self._folder),
            "DATABASE_URL": f"sqlite:///{self.database}",
            "HERMES_ADMIN_PASSWORD": PASSWORD,
            "OPENAI_BASE_URL": self._model_url,
            "OPENAI_API_KEY": "sk-test",
            "HERMES_MODEL": f"openai:{self._model}",
            "PYTHONUNBUFFERED": "1",
            **self._more,
        }

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self.said.append(line)
                self._lines.put(line)
        except ValueError:
            pass  # closed by stop()
        self._lines.put(None)

    def _wait_for_address(self) -> str:
        while True:
            try:
                line = self._lines.get(timeout=START_S)
            except Empty:
                line = None
            if line is None:
                self.kill()
                raise AssertionError("serve did not start:\n" + "".join(self.said))
            if found := _SERVES.search(line):
                return found[1]
