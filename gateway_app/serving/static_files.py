"""Keeps the collected static files those of this version."""

import fcntl
import filecmp
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage, staticfiles_storage
from django.core.management import call_command


def collect_if_stale() -> bool:
    """The collected files are those of the installed apps; whether they had to be written.

    Processes that start together collect once. Old names stay for pages that are still open.
    """
    storage = staticfiles_storage
    if not isinstance(storage, ManifestStaticFilesStorage) or not _stale_copies():
        return False
    root = Path(settings.STATIC_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        storage.hashed_files, storage.manifest_hash = storage.load_manifest()  # type: ignore[assignment]  # stubs: one value
        stale = _stale_copies()
        for copy in stale:
            copy.unlink(missing_ok=True)  # collectstatic compares times only, and may skip it
        if stale:
            call_command("collectstatic", interactive=False, verbosity=0)
    return bool(stale)


def _stale_copies() -> list[Path]:
    """Copies that are missing, differ from their source, or are newer than the manifest."""
    root = Path(settings.STATIC_ROOT)
    manifest = root / "staticfiles.json"
    written = manifest.stat().st_mtime if manifest.exists() else 0.0
    return [
        copy
        for name, source in _sources()
        if not (copy := root / name).exists()
        or copy.stat().st_mtime > written
        or not filecmp.cmp(source, copy, shallow=False)
    ]


def _sources() -> Iterator[tuple[str, str]]:
    """Every static file of the installed apps once, by the name under which it is served."""
    seen = set()
    for finder in get_finders():
        for name, storage in finder.list(None):
            if name not in seen:
                seen.add(name)
                yield name, storage.path(name)
