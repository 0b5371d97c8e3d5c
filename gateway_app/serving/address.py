"""Where people reach this server, kept for the commands that run beside it."""

from contextlib import suppress
from pathlib import Path
from typing import Final

DEFAULT: Final = "http://127.0.0.1:8000"


def keep_address(data_dir: Path, base_url: str) -> None:
    """The next `kept_address` of this data directory is `base_url`, if it takes files at all."""
    with suppress(OSError):
        _file(data_dir).write_text(f"{base_url}\n")


def kept_address(data_dir: Path) -> str:
    """Where Hermes was served last from this data directory; before that, where it will be."""
    try:
        return _file(data_dir).read_text().strip() or DEFAULT
    except OSError:
        return DEFAULT


def _file(data_dir: Path) -> Path:
    return data_dir / "served_at"
