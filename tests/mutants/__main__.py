"""`python -m tests.mutants [--only WORD] [--seconds N] [--postgres URL]`: the table of faults.

PostgreSQL is used if `--postgres` or DATABASE_URL names a server. Exits with 1 if a fault survives
for which no reason is written down.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import django

from tests.mutants.catalogue import Mutant
from tests.mutants.child import Outcome

GRACE_S = 300
"""Beyond its own time, a child may need this long to set up and to end a seed it has begun."""

BROKEN = "BROKEN RUN"
"""The child said nothing: the table must not count that as caught."""


@dataclass(frozen=True, slots=True)
class Job:
    mutant: str
    proof: str
    database: str
    url: str


def main() -> int:
    options = _options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.mutants.all import CATALOGUE

    jobs = list(_jobs(CATALOGUE, options))
    survivors = 0
    say(f"{'fault':58} {'database':10} {'caught by':22} {'s':>5} {'operations':>10}")
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda job: run_child(job, options.seconds), jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            chosen = CATALOGUE.get(job.mutant)
            reason = (chosen.harmless or {}).get(job.database, "") if chosen else "control"
            wrong = not outcome.caught and not reason if chosen else bool(outcome.caught)
            wrong = wrong or outcome.caught == BROKEN
            survivors += wrong
            caught = outcome.caught or ("SURVIVED" if wrong else "-")
            say(
                f"{job.mutant[:58]:58} {job.database:10} {caught[:22]:22}"
                f" {outcome.seconds:5.1f} {outcome.operations:10}"
                f"{'  harmless: ' + reason if reason and not outcome.caught else ''}"
                f"{'  ' + ' '.join(outcome.detail.split())[-400:] if options.details else ''}"
            )
    say(f"{len(jobs)} runs, {survivors} not as they must be")
    return 1 if survivors else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", default="", help="mutants whose name holds this")
    parser.add_argument("--seconds", type=float, default=60, help="time for each of them")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--postgres", default=os.environ.get("DATABASE_URL", ""))
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default=None)
    parser.add_argument("--details", action="store_true", help="say how each was caught")
    return parser.parse_args()


def _jobs(catalogue: dict[str, Mutant], options: argparse.Namespace) -> Iterator[Job]:
    urls = {"sqlite": ""}
    if urlsplit(options.postgres).scheme in {"postgres", "postgresql"}:
        urls["postgresql"] = options.postgres
    number = 0
    for name in ["none", *catalogue]:
        if options.only not in name:
            continue
        chosen = catalogue.get(name)
        for database, url in urls.items():
            wanted = options.database in (None, database)
            if not wanted or (chosen and database not in chosen.databases):
                continue
            number += 1
            own = urlunsplit(urlsplit(url)._replace(path=f"/mutant_{os.getpid()}_{number}"))
            proof = chosen.proof if chosen else "machine"
            yield Job(name, proof, database, own if url else "")


def run_child(job: Job, seconds: float) -> Outcome:
    """The mutant in a process of its own. Nothing of it is left: its database goes with it."""
    environment = {**os.environ, "DATABASE_URL": job.url}
    command = [sys.executable, "-m", "tests.mutants.child", job.mutant, "--proof", job.proof]
    command += ["--seconds", str(seconds)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds + GRACE_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        drop_database(job.url)
        return Outcome(BROKEN, seconds + GRACE_S, 0, "it hung")
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"caught"')]
    if not lines:
        drop_database(job.url)
        return Outcome(BROKEN, 0, 0, done.stderr[-2000:])
    return Outcome(**json.loads(lines[-1]))


def drop_database(url: str) -> None:
    """The database of a child that could not drop it itself."""
    if not url:
        return
    import psycopg

    parts = urlsplit(url)
    with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as server:
        server.execute(f'DROP DATABASE IF EXISTS "test_{parts.path.lstrip("/")}" WITH (FORCE)')  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
