"""ARCHITECTURE.md, the decisions and the README speak of files that exist."""

import re
from typing import Final

import pytest

from gateway_app.config import GatewayConfig
from tests.docs.reading import ROOT, document, section

PAGE: Final = document("ARCHITECTURE.md")
PAGES: Final = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md")]
)


def test_it_names_rooms_that_exist_and_leaves_none_out() -> None:
    rows = re.findall(r"^\| (`.+?) \|", section(PAGE, "## The tree"), re.MULTILINE)
    named = {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert {name for name in named if not (ROOT / name).exists()} == set()
    here = {path.name for path in (ROOT / "gateway_app").iterdir() if path.is_dir()}
    known = {name.split("/")[1] for name in named if name.startswith("gateway_app/")}
    assert here - known <= {"__pycache__", "migrations"}


def test_it_names_a_test_for_everything_that_must_hold() -> None:
    rows = re.findall(r"^\| (I\d+) \|.*\| ([^|]+) \|$", section(PAGE, "## What must hold"), re.M)
    assert [name for name, _ in rows] == [f"I{number}" for number in range(1, 13)]
    for name, tests in rows:
        paths = re.findall(r"`(tests/[^`]+)`", tests)
        assert paths, name
        assert all((ROOT / path).exists() for path in paths), name


def test_it_gives_the_times_that_hold() -> None:
    config = GatewayConfig()
    assert f"after {config.lease_s:.0f} s" in PAGE
    assert f"| the poll, which heals lost wake-ups | every {config.poll_s:.0f} s |" in PAGE
    assert f"| housekeeping | every {config.housekeeping_s:.0f} s |" in PAGE
    assert f"| what the process tells of itself | every {config.presence_s:.0f} s" in PAGE
    assert f"{1000 / config.limits_settle_ms:.0f} times a second, while somebody" in PAGE
    assert f"{config.flush_quick_tick_ms} or {config.flush_tick_ms} ms" in PAGE
    assert f"readers (SQLite), {config.reader_threads} " in PAGE
    assert f"pool (PostgreSQL), {config.postgres_threads} " in PAGE


@pytest.mark.parametrize("name", PAGES)
def test_it_links_to_files_that_exist(name: str) -> None:
    folder = (ROOT / name).parent
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document(name)):
        if "://" not in target:
            assert (folder / target).exists(), target


def test_it_lists_every_decision() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", document("docs/decisions/README.md"))
    assert listed == sorted(path.name for path in folder.glob("0*.md"))
    for name in listed:
        text = document(f"docs/decisions/{name}")
        assert re.findall(r"^## (.+)$", text, re.M) == [
            "Context", "Decision", "Consequences", "Instead of",
        ]  # fmt: skip
        assert "\nStatus: accepted\n" in text
