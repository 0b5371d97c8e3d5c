"""I2 and I3 when the receivers of several threads and the guard meet."""

import pytest
from django.db import connection

from tests.coherence.threads import run_threads

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_keeps_one_cache_right_under_seven_threads(capsys: pytest.CaptureFixture[str]) -> None:
    report = run_threads(rounds=250)
    assert report.checks > 100
    with capsys.disabled():
        print(f"\n{connection.vendor}: {report}")  # noqa: T201  the proof's figures
