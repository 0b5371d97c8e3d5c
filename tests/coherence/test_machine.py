"""I1, I2, I3 and I7 after every operation of the state machine."""

import os

import pytest
from django.db import connection

from tests.coherence.run import FIRST_SEED, run_machine

pytestmark = pytest.mark.django_db(transaction=True)

BUDGETS = {"sqlite": 20_000, "postgresql": 10_000}
"""Operations in a usual run.

By hand: HERMES_OPERATIONS sets another number, HERMES_SEED the first seed, and HERMES_SHRINK=1
makes what fails small.
"""


def test_it_stays_coherent_whatever_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    operations = int(os.environ.get("HERMES_OPERATIONS") or BUDGETS[connection.vendor])
    report = run_machine(
        operations=operations,
        first_seed=int(os.environ.get("HERMES_SEED") or FIRST_SEED),
        shrink=bool(os.environ.get("HERMES_SHRINK")),
    )
    assert report.operations >= operations
    with capsys.disabled():
        print(f"\n{connection.vendor}: {report}")  # noqa: T201  the proof's figures
