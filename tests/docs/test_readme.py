"""The README promises what is there."""

import re
from typing import Final

from scripts.pictures import LARGEST
from tests.docs.reading import ROOT, document

PAGE: Final = document("README.md")


def test_it_gives_one_command_for_the_tests() -> None:
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    assert commands.count("make test") == 1
    assert "pytest" not in PAGE


def test_it_names_targets_that_the_makefile_has() -> None:
    targets = set(re.findall(r"^([a-z]+):", document("Makefile"), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", PAGE)) <= targets


def test_it_shows_pictures_that_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)
    assert len(pictures) == 3
    for path in (ROOT / "docs/pictures").iterdir():
        assert path.name in PAGE
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size <= LARGEST


def test_it_counts_the_lines_of_the_client() -> None:
    lines = len(document("docs/websocket_client.py").splitlines())
    assert f"a client of {lines} lines" in PAGE
