"""Every package is pinned: an installation of today is one of tomorrow."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def read(name: str) -> list[Requirement]:
    """The requirements of a file and of the files that it names."""
    found = []
    for line in (ROOT / name).read_text().splitlines():
        if other := re.fullmatch(r"-r (\S+)", line):
            found += read(other[1])
        elif line and not line.startswith("#"):
            found.append(Requirement(line))
    return found


def needed(requirement: Requirement, met: set[tuple[str, str]]) -> Iterator[str]:
    """The names of the package and of all that it needs in this environment."""
    for extra in ("", *requirement.extras):
        name = canonicalize_name(requirement.name)
        if (name, extra) in met:
            continue
        met.add((name, extra))
        yield name
        try:
            wanted = [Requirement(one) for one in requires(name) or ()]
        except PackageNotFoundError:  # another system's
            continue
        for one in wanted:
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                yield from needed(one, met)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_it_pins_whatever_is_installed(name: str) -> None:
    pinned = {canonicalize_name(one.name): one for one in read(name)}
    met: set[tuple[str, str]] = set()
    names = {one for requirement in pinned.values() for one in needed(requirement, met)}
    assert sorted(names - pinned.keys()) == []
    for package, requirement in pinned.items():
        [specifier] = requirement.specifier
        assert (specifier.operator, specifier.version) == ("==", version(package))
