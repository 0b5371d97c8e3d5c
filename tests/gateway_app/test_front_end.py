"""What holds for every file of the chat's front end, whoever changes it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
STATIC = ROOT / "gateway_app/static/gateway_app"
TEMPLATES = ROOT / "templates/gateway_app"
SCRIPTS = sorted((STATIC / "js").glob("*.js"))
SHEETS = sorted((STATIC / "css").glob("*.css"))
MARKUP = sorted(TEMPLATES.glob("*.html"))
LINES = 250
WAYS_ROUND_THE_SANITISER = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
)
PHYSICAL = re.compile(
    r"(?<![-\w])(?:(?:margin|padding|border)-(?:left|right|top|bottom)"
    r"|(?:left|right|top|bottom|width|height|(?:min|max)-(?:width|height))\s*:"
    r"|(?:text-align|float|clear)\s*:\s*(?:left|right))"
)
MEDIA = re.compile(r"@media[^{]*\{")


def names(files: list[Path]) -> list[str]:
    return [file.name for file in files]


@pytest.mark.parametrize("file", [*SCRIPTS, *SHEETS], ids=names([*SCRIPTS, *SHEETS]))
def test_it_keeps_one_duty_a_file(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= LINES


@pytest.mark.parametrize("file", SCRIPTS, ids=names(SCRIPTS))
def test_it_makes_markup_by_the_sanitiser_only(file: Path) -> None:
    assert not WAYS_ROUND_THE_SANITISER.search(file.read_text())


@pytest.mark.parametrize("file", SHEETS, ids=names(SHEETS))
def test_it_lays_out_by_logical_properties_only(file: Path) -> None:
    text = MEDIA.sub("{", file.read_text())
    assert PHYSICAL.findall(text) == []


@pytest.mark.parametrize("file", SHEETS, ids=names(SHEETS))
def test_it_uses_tokens_that_exist(file: Path) -> None:
    known = set(re.findall(r"(--h-[\w-]+):", (STATIC / "css/tokens.css").read_text()))
    assert set(re.findall(r"var\((--h-[\w-]+)", file.read_text())) <= known


def test_it_has_every_icon_that_it_shows() -> None:
    known = set(re.findall(r'id="i-([\w-]+)"', (TEMPLATES / "icons.html").read_text()))
    shown = set()
    for file in MARKUP:
        shown |= set(re.findall(r'icon\.html" with name="([\w-]+)"', file.read_text()))
    for file in SCRIPTS:
        shown |= set(re.findall(r'icon(?:\(|: )"([\w-]+)"', file.read_text())) - {"ring"}
    assert shown
    assert shown <= known


def test_it_finds_every_part_that_its_scripts_name() -> None:
    """A part that no template has would break the page at the first use."""
    markup = "".join(file.read_text() for file in MARKUP)
    known = set(re.findall(r'(?:data-part|part)="(\w+)"', markup))
    used = set()
    for file in SCRIPTS:
        text = file.read_text()
        used |= set(re.findall(r"(?:this\.#|(?<![\w.]))parts\.(\w+)", text))
        for group in re.findall(r"const \{([^}]*)\} = this\.#parts;", text):
            names_taken = (name.split(":")[0].strip() for name in group.split(","))
            used |= {name for name in names_taken if name and not name.startswith("...")}
    assert used
    assert used <= known


def test_it_keeps_the_vendored_files_as_they_were_published() -> None:
    ran = subprocess.run(
        [sys.executable, "scripts/vendor.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def test_it_serves_no_source_map_that_is_not_there() -> None:
    for file in (STATIC / "vendor").glob("*.js"):
        assert "sourceMappingURL" not in file.read_text()


def test_it_lets_text_within_items_begin_at_its_own_side() -> None:
    """Chromium does so by itself; Firefox and WebKit hand on the side of the list."""
    assert re.search(r"(?m)^li \{\n  text-align: start;\n\}", (STATIC / "css/base.css").read_text())
