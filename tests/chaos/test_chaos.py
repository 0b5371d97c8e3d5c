"""A minute of it (a leg of its own): needs PostgreSQL, and a `redis-server` to start and kill."""

import os
import subprocess
import sys

import pytest

from tests.chaos.place import ROOT

pytestmark = pytest.mark.chaos


def test_it_keeps_every_promise_while_everything_breaks() -> None:
    seconds = os.environ.get("HERMES_CHAOS_S", "60")
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--seconds", seconds],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    said = "\n".join(line for line in done.stdout.splitlines() if "aiohttp" not in line)
    assert done.returncode == 0, said[-4000:]
    assert "worker killed" in said
