"""I1, I2, I3 and I7 after every operation of the state machine."""

import os

import pytest
from django.db import connection

from tests.coherence.run import run_machine

pytestmark = pytest.mark.django_db(transaction=True)

BUDGETS = {"sqlite": 2_000, "postgresql": 1_000}
"""Operations in a usual run; HERMES_OPERATIONS sets another number, as CI does: ten times these."""


def test_it_stays_coherent_whatever_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    operations = int(os.environ.get("HERMES_OPERATIONS") or BUDGETS[connection.vendor])
    shrink = bool(os.environ.get("HERMES_SHRINK"))
    report = run_machine(operations=operations, shrink=shrink)
    assert report.operations >= operations
    with capsys.disabled():
        print(f"\n{connection.vendor}: {report}")  # noqa: T201  the proof's figures
