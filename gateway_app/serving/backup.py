"""A copy of the SQLite file, taken before its schema changes."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from django.utils import timezone

KEPT: Final = 5


class BackupFailed(Exception):
    """There is no new copy; the database is as it was. The message says why."""


def back_up(database: Path, folder: Path) -> Path:
    """A consistent copy stands in `folder`, for its owner only; the last KEPT copies stay.

    Raises BackupFailed, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{database.stem}-{timezone.now():%Y%m%dT%H%M%S%fZ}.sqlite3"
    draft = path.with_suffix(".part")
    os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(draft)) as copy:
            source.backup(copy)
        draft.replace(path)
    except sqlite3.Error as exc:
        raise BackupFailed(f"No backup could be written to {folder}: {exc}.") from exc
    finally:
        draft.unlink(missing_ok=True)
    for old in sorted(folder.glob(f"{database.stem}-*.sqlite3"))[:-KEPT]:
        old.unlink()
    return path
