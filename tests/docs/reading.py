"""Finds a document, and what it says under a heading."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def document(name: str) -> str:
    """The text of a document; `name` counts from the top of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """What stands below the heading up to the next one of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, found, rest = f"\n{text}".partition(f"\n{heading}\n")
    assert found, f"There is no heading {heading!r}."
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table_words(text: str) -> list[str]:
    """The code words that begin the rows of every table in the text; not those of its head."""
    return re.findall(r"^\| `([^`]+)`.*$(?!\n\|-)", text, re.MULTILINE)
