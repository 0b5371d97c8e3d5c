"""Runs the machine over a list of seeds until enough operations were done."""

import itertools
import random
from dataclasses import dataclass
from time import monotonic

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.coherence.machine import CoherenceMachine
from tests.coherence.world import Stage

FIRST_SEED = 20_260
_EXAMPLES = 12
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did."""

    operations: int
    requests: int
    seconds: float
    first_seed: int
    seeds: int
    verdicts: dict[tuple[str, str], int]
    by_name: dict[str, int]

    def __str__(self) -> str:
        verdicts = ", ".join(
            f"{'/'.join(filter(None, key))} {count}" for key, count in sorted(self.verdicts.items())
        )
        return (
            f"{self.operations} operations, {self.requests} requests in {self.seconds:.0f} s,"
            f" {self.seeds} seeds from {self.first_seed}; verdicts: {verdicts}"
        )


class SeedFailed(AssertionError):
    """A seed found something; its exception is the cause. `operations`: how many it took."""

    def __init__(self, message: str, operations: int) -> None:
        super().__init__(message)
        self.operations = operations


def run_machine(
    *, operations: int, seconds: float = 3600, first_seed: int = FIRST_SEED, shrink: bool = False
) -> Report:
    """No invariant broke in so many operations, or so long. Raises SeedFailed.

    `shrink`: what fails is made small first, which takes minutes.
    """
    stage, begun, seeds = Stage(), monotonic(), 0
    CoherenceMachine.stage = stage
    try:
        for number in itertools.count(first_seed):
            if stage.operations.total() >= operations or monotonic() - begun > seconds:
                break
            seeds += 1
            _run_seed(number, stage, shrink=shrink)
        return Report(
            stage.operations.total(), stage.requests, monotonic() - begun, first_seed, seeds,
            dict(stage.verdicts), dict(stage.operations),
        )  # fmt: skip
    finally:
        stage.close()


def _run_seed(number: int, stage: Stage, *, shrink: bool) -> None:
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    random.seed(number)
    try:
        run_state_machine_as_test(
            seed(number)(CoherenceMachine),
            settings=settings(
                max_examples=_EXAMPLES,
                stateful_step_count=_STEPS,
                database=None,
                deadline=None,
                phases=phases,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
                report_multiple_bugs=False,
            ),
        )
    except Exception as exc:
        last = " > ".join(stage.trace[-12:])
        message = f"seed {number}: {type(exc).__name__}: {exc} (after {last})"
        raise SeedFailed(message, stage.operations.total()) from exc
