"""The front end's pure logic, tested by node's own test runner.

The node is the one that Playwright brings, so that a fresh machine needs nothing more.
"""

import re
import subprocess
import sys
from pathlib import Path

import playwright
import pytest

HERE = Path(__file__).parent
NAME = "node.exe" if sys.platform == "win32" else "node"
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def node() -> str:
    path = Path(playwright.__file__).parent / "driver" / NAME
    assert path.exists(), (
        f"The front end's tests run in Playwright's own node, and {path} is not there. "
        "Install requirements-dev.txt again."
    )
    return str(path)


@pytest.mark.parametrize("file", sorted(HERE.glob("*.test.js")), ids=lambda file: file.name)
def test_it_passes_the_front_ends_tests(node: str, file: Path) -> None:
    ran = subprocess.run(
        [node, "--test", "--test-reporter=spec", str(file)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"pass [1-9]", ran.stdout), "No test ran."


def test_it_finds_the_front_ends_tests() -> None:
    assert list(HERE.glob("*.test.js"))
