"""Compiles the catalogues of LOCALE_PATHS, without gettext's own programs."""

import os
from collections.abc import Iterator
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from django.conf import settings


def compile_if_stale() -> list[Path]:
    """Every .po file has its .mo beside it, not older than itself; the .mo files just written.

    Written beside and renamed, so that processes that start together never read half a file.
    """
    return [_compile(source) for source in _sources() if _is_stale(source)]


def _sources() -> Iterator[Path]:
    for folder in settings.LOCALE_PATHS:
        yield from sorted(Path(folder).glob("*/LC_MESSAGES/*.po"))


def _is_stale(source: Path) -> bool:
    compiled = source.with_suffix(".mo")
    return not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime


def _compile(source: Path) -> Path:
    compiled, part = source.with_suffix(".mo"), source.with_suffix(f".{os.getpid()}.mo.part")
    locale = source.parent.parent.name
    with source.open("rb") as file:
        catalogue = read_po(file, locale=locale, domain=source.stem)
    with part.open("wb") as file:
        write_mo(file, catalogue)
    return part.replace(compiled)
