"""Bring the translations up to the source: `python scripts/catalogue.py`.

Collects every message of the Python code, the templates and the scripts, and rewrites locale/*/ so
that each has an entry, sorted, without what is no longer used. What has no translation yet is
printed. `--check` prints it and changes nothing; both end with 1 if anything is left to translate.
"""

import argparse
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.pofile import read_po, write_po

ROOT: Final = Path(__file__).resolve().parent.parent
LOCALE: Final = ROOT / "locale"
APPS: Final = ("gateway_app", "hermes_site", "sessions_app")
VOLATILE: Final = ("POT-Creation-Date", "PO-Revision-Date", "Generated-By", "Last-Translator")
KEYWORDS: Final = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
SENTENCES: Final = {"say": None}
TOLD: Final = "The chat shows it too."
"""Stands at what `say` marks: sessions_app/sentences.py, templatetags/catalogue.py."""


def sources(domain: str) -> Iterator[tuple[Path, str]]:
    """The files of a domain, each with the extractor that reads it."""
    if domain == "djangojs":
        for path in sorted((ROOT / "gateway_app/static/gateway_app/js").rglob("*.js")):
            yield path, "javascript"
        return
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, "python"
    for path in sorted((ROOT / "templates").rglob("*.html")):
        yield path, "template"


def read(path: Path, kind: str) -> tuple[str, io.BytesIO]:
    """Babel's name of the extractor, and what it is to read.

    Django turns a template into calls of gettext with rubbish between, which the reader of scripts
    takes and the one of Python, who minds indentation, does not.
    """
    if kind != "template":
        return kind, io.BytesIO(path.read_bytes())
    from django.utils.translation.template import templatize

    return "javascript", io.BytesIO(templatize(path.read_text(), str(path)).encode())


def in_use(domain: str) -> Catalog:
    """Every message that the source names."""
    found = Catalog(domain=domain)
    options = {"jsx": "", "parse_template_string": "1"}
    for path, kind in sources(domain):
        method, file = read(path, kind)
        for _, message, _, context in extract(
            method, file, KEYWORDS, options=options if method == "javascript" else {}
        ):
            found.add(message, context=context)
        if kind == "python":
            for _, message, _, _ in extract("python", io.BytesIO(path.read_bytes()), SENTENCES):
                found.add(message, auto_comments=[TOLD])
    return found


def brought_up(path: Path) -> Catalog:
    """The catalogue of `path` with exactly the messages in use. Needs configured settings."""
    with path.open("rb") as file:
        catalogue = read_po(file, locale=path.parent.parent.name, domain=path.stem)
    catalogue.update(in_use(path.stem), no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    return catalogue


def faults(catalogue: Catalog) -> list[str]:
    """One line for each message that is untranslated, doubtful, or lost a placeholder."""
    return [
        f"{catalogue.locale}/{catalogue.domain}: {message.id!r}"
        for message in catalogue
        if message.id and (message.fuzzy or not _complete(message, catalogue.num_plurals))
    ]


def _complete(message: Message, forms: int) -> bool:
    if not isinstance(message.id, str):
        texts = message.string
        ids = list(message.id)
        return len(texts) == forms and all(
            text and _placeholders(text) <= _placeholders(ids[-1]) for text in texts
        )
    return bool(message.string) and _placeholders(message.string) == _placeholders(message.id)


def _placeholders(text: str) -> set[str]:
    return set(re.findall(r"%\(\w+\)[sd]|%[sd]|\{\w*\}", text))


def rendered(catalogue: Catalog) -> bytes:
    """The file, without lines that differ each time: two people's changes then merge."""
    out = io.BytesIO()
    catalogue.header_comment = f"# {catalogue.locale}: written by scripts/catalogue.py."
    catalogue.fuzzy = False
    write_po(out, catalogue, width=100, no_location=True, sort_output=True)
    volatile = tuple(f'"{name}' for name in VOLATILE)
    lines = out.getvalue().splitlines(keepends=True)
    return b"".join(line for line in lines if not line.decode().startswith(volatile))


def files() -> list[Path]:
    return sorted(LOCALE.glob("*/LC_MESSAGES/*.po"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="print, change nothing")
    check = parser.parse_args().check
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")
    wrong = []
    for path in files():
        catalogue = brought_up(path)
        wrong += faults(catalogue)
        if not check:
            path.write_bytes(rendered(catalogue))
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
