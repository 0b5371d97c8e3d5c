"""One mutant in one process, on a database of its own: `python -m tests.mutants.child`."""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from time import monotonic

import django


@dataclass(slots=True)
class Outcome:
    """What became of a mutant. `caught`: the invariant or test that saw it; empty: it survived."""

    caught: str = ""
    seconds: float = 0
    operations: int = 0
    detail: str = ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    django.setup()
    from tests.mutants.all import CATALOGUE

    proof = "machine"
    if options.name != "none":
        chosen = CATALOGUE[options.name]
        chosen.apply()
        proof = chosen.proof
    outcome = run_tests(proof) if proof.startswith("tests/") else run_proof(proof, options.seconds)
    sys.stdout.write(f"\n{json.dumps(asdict(outcome))}\n")


def run_proof(proof: str, seconds: float) -> Outcome:
    """The machine, or the threads, on a database that was made for it."""
    from django.db import connection

    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    begun = monotonic()
    try:
        return run_threads(seconds) if proof == "threads" else run_machine(seconds)
    except Exception as exc:  # noqa: BLE001  a mutant may break anything, also the proof's setup
        return Outcome(type(exc).__name__, monotonic() - begun, 0, str(exc)[:300])
    finally:
        connection.close()
        connection.creation.destroy_test_db(name, verbosity=0)


def run_machine(seconds: float) -> Outcome:
    from tests.coherence.run import SeedFailed, run_machine

    begun = monotonic()
    try:
        report = run_machine(operations=10**9, seconds=seconds)
    except SeedFailed as failed:
        cause = failed.__cause__
        caught = getattr(cause, "invariant", "") or type(cause).__name__
        return Outcome(caught, monotonic() - begun, failed.operations, str(failed)[:300])
    return Outcome("", report.seconds, report.operations)


def run_threads(seconds: float) -> Outcome:
    from tests.coherence.threads import WrongCache, run_threads

    begun = monotonic()
    try:
        report = run_threads(rounds=10**9, seconds=seconds)
    except WrongCache as wrong:
        return Outcome("threads", monotonic() - begun, wrong.checks, str(wrong)[:300])
    return Outcome("", monotonic() - begun, report.checks)


class _Failures:
    """A pytest plugin: the tests that failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: object) -> None:
        if getattr(report, "failed", False):
            self.names.append(getattr(report, "nodeid", "").rpartition("::")[2])


def run_tests(path: str) -> Outcome:
    """The founding regression's own tests, each one."""
    import pytest

    failures, begun = _Failures(), monotonic()
    pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", path], plugins=[failures])
    return Outcome(", ".join(failures.names), monotonic() - begun, 0)


if __name__ == "__main__":
    main()
