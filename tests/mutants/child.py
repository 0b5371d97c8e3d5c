"""One mutant in one process, on a database of its own: `python -m tests.mutants.child`."""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from time import monotonic

import django

PRODUCT = ("gateway_app", "sessions_app", "hermes_site")


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
    parser.add_argument("--proof", default="machine")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    if options.proof.startswith("tests/"):
        outcome = run_tests(options.name, options.proof)
    else:
        django.setup()
        put_in(options.name)
        outcome = run_proof(options.proof, options.seconds)
    sys.stdout.write(f"\n{json.dumps(asdict(outcome))}\n")


def put_in(name: str) -> None:
    """The fault is in this process from now on; `none` is the control."""
    from tests.mutants.all import CATALOGUE

    if name != "none":
        before = _names()
        CATALOGUE[name].apply()
        added = _names() - before
        assert not added, f"{name!r} replaces what is no longer there: {added}"


def _names() -> set[tuple[str, str]]:
    """What can be replaced in the product: names of modules and of their classes."""
    modules = [one for name, one in sys.modules.items() if _is_ours(name)]
    found = {(one.__name__, name) for one in modules for name in vars(one)}
    for owner in [one for module in modules for one in vars(module).values()]:
        if isinstance(owner, type) and _is_ours(owner.__module__):
            found |= {(f"{owner.__module__}.{owner.__qualname__}", name) for name in vars(owner)}
    return {(owner, name) for owner, name in found if not name.startswith("__")}


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in PRODUCT


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
        return Outcome(caught, monotonic() - begun, failed.operations, str(failed)[:400])
    return Outcome("", report.seconds, report.operations)


def run_threads(seconds: float) -> Outcome:
    from tests.coherence.threads import WrongCache, run_threads

    begun = monotonic()
    try:
        report = run_threads(rounds=10**9, seconds=seconds)
    except WrongCache as wrong:
        return Outcome("threads", monotonic() - begun, wrong.checks, str(wrong)[:300])
    return Outcome("", monotonic() - begun, report.checks)


class _Plugin:
    """Puts the fault in once Django is set up, and keeps the tests that fail."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.failed: list[str] = []

    def pytest_collection(self) -> None:
        put_in(self._name)

    def pytest_runtest_logreport(self, report: object) -> None:
        if getattr(report, "failed", False):
            self.failed.append(getattr(report, "nodeid", "").rpartition("::test_it_")[2])


def run_tests(name: str, path: str) -> Outcome:
    """One test by its path, in all its variants: one that fails has caught the fault."""
    import pytest

    plugin, begun = _Plugin(name), monotonic()
    pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", path], plugins=[plugin])
    caught = f"{len(plugin.failed)} tests" if plugin.failed else ""
    return Outcome(caught, monotonic() - begun, 0, ", ".join(plugin.failed))


if __name__ == "__main__":
    main()
