"""Django's SECRET_KEY where the environment names none: made once, kept in the data directory."""

import os
import secrets
from pathlib import Path


def kept_secret_key(data_dir: Path) -> str:
    """The key of this data directory, in a file that only its owner reads.

    Of processes that start together one makes it, all get the same. Where it can neither be read
    nor kept the key is random and this process's own; `hermes_site.checks` says so.
    """
    path = data_dir / "secret_key"
    try:
        return _read(path) or _make(path)
    except OSError:
        return secrets.token_urlsafe(50)


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _make(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(50))
    try:
        os.link(draft, path)
    except FileExistsError:
        if not _read(path):
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return _read(path)
