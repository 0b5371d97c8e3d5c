"""What tools tell other processes, and how those hold them; knows no Django."""

import os
from pathlib import Path
from typing import Final

DIARY: Final = "TOOLBOX_DIARY"
"""The variable that names a file: every call is a line of it, before it does anything else."""
HOLD: Final = "TOOLBOX_HOLD"
"""The variable that names a folder: a call waits at the FIFO in it that is called like `where`."""


def note(*words: str) -> None:
    """One line, whole, though several processes write."""
    if path := os.environ.get(DIARY):
        diary = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(diary, f"{' '.join(words)}\n".encode())
        os.close(diary)


def read_diary(path: Path) -> list[list[str]]:
    """[turn, call, tool] of every call so far."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [line.split() for line in text.splitlines()]
