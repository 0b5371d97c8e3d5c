"""`python -m bench [--quick] [--postgres URL] [--redis URL]`: one table, goals beside figures.

A direct client of a fake model server, a bare Channels relay, and Hermes, by the same load client
in the same run. Latencies of a busy machine say little; ratios within the run and CPU do.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench import servers, stages
from bench.stages import QUICK, Size
from bench.table import Row, render, skipped


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def measure(size: Size, postgres_url: str | None, redis_url: str | None) -> list[Row]:
    """Every row of the table."""
    began, rows = time.monotonic(), list[Row]()

    def stage(what: str, work: Callable[[], list[Row]], lacks: str = "") -> None:
        if not lacks and time.monotonic() - began > size.whole_s:
            lacks = "no time was left"
        if lacks:
            rows.append(skipped(what, lacks))
            return
        say(f"{time.monotonic() - began:4.0f} s  {what}")
        try:
            rows.extend(work())
        except subprocess.SubprocessError as exc:
            rows.append(skipped(what, f"{type(exc).__name__}: see above"))

    with ExitStack() as stack:
        direct = stack.enter_context(servers.model_server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-bench-")))
        env = servers.hermes_environment(folder, direct.url)
        hermes = stack.enter_context(servers.hermes(env))
        stage("side by side", lambda: stages.side_by_side(direct, hermes, size))
        stage("streams at 83 tokens/s", lambda: stages.streams(direct, hermes, size))
        stage("memory", lambda: stages.memory(direct.url, size))
        stage("appends", lambda: stages.appends(direct.url, size))
        stage("many conversations", lambda: stages.listing(direct.url, size))
        stage("fixed prompt", lambda: stages.prompt(direct.url))
        stage("added on PostgreSQL", lambda: stages.postgres(direct, postgres_url or "", size),
              "" if postgres_url else "give --postgres URL")  # fmt: skip
        stage("two processes and Redis",
              lambda: stages.other_process(direct.url, redis_url or "", size),
              "" if redis_url else "give --redis URL")  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    env = os.environ.get
    parser.add_argument("--quick", action="store_true", help="under 90 s, with fewer repeats")
    made = "a server where a database may be made, and dropped again"
    parser.add_argument("--postgres", metavar="URL", default=env("DATABASE_URL"), help=made)
    parser.add_argument("--redis", metavar="URL", default=env("REDIS_URL"))
    options = parser.parse_args()
    if (options.postgres or "").startswith("sqlite"):
        options.postgres = None
    began = time.monotonic()
    rows = measure(QUICK if options.quick else Size(), options.postgres, options.redis)
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(render(rows))
    print(f"{time.monotonic() - began:.0f} s; load average {load} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
