"""docs/scaling.md says what a crash does at every point that is tested, and at no other."""

import re
from typing import Final

from tests.chaos.test_kill_points import POINTS
from tests.docs.reading import document, section

PAGE: Final = document("docs/scaling.md")


def test_it_has_a_line_for_every_kill_point() -> None:
    table = section(PAGE, "## What a crash does").partition("| away")[0]
    listed = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)
    assert [name for name in listed if name not in {"killed", "---"}] == list(POINTS)
