"""The front end's pure logic, tested by node's own test runner."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OLDEST_NODE = (20, 19)
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def node() -> str:
    """A node that knows modules by their syntax."""
    path = shutil.which("node")
    wanted = ".".join(str(number) for number in OLDEST_NODE)
    assert path, f"The front end's tests need node {wanted} or newer; install it (nodejs.org)."
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    assert found and (int(found[1]), int(found[2])) >= OLDEST_NODE, (
        f"The front end's tests need node {wanted} or newer; this is {said.strip()}."
    )
    return path


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
