"""Fetch the front end's libraries, pinned, into the static files: `python scripts/vendor.py`.

Needs `npm`. Every package comes from the registry as its published archive, is checked against the
integrity pinned in vendored_packages.py, and only the named files are kept. `--check` compares the
kept files with VENDORED.json and needs neither npm nor a network.
"""

import argparse
import base64
import hashlib
import json
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from vendored_packages import DIAGRAM_ENTRIES, DIAGRAMS, PACKAGES, Package

ROOT: Final = Path(__file__).resolve().parent.parent
VENDOR: Final = ROOT / "gateway_app/static/gateway_app/vendor"
SYMBOLS: Final = ROOT / "templates/gateway_app/icons.html"
ADMIN_SYMBOLS: Final = ROOT / "templates/admin/icons.html"
SOURCE_MAP: Final = re.compile(rb"\n?//# sourceMappingURL=\S+\s*$")
OTHER_FONTS: Final = re.compile(rb',url\(fonts/[\w-]+\.(?:woff|ttf)\) format\("\w+"\)')
"""Every browser that runs the chat reads woff2."""
IMPORTED: Final = re.compile(
    r"""(?:^|[;}])(?:import|export)[\w*{}\s,$]*(?:from)?["'](\.[^"']+)["']"""
)
"""A static import in minified code, where no space precedes the quote."""


ICONS: Final = Package(
    "lucide-static",
    "1.62.0",
    "ISC",
    "sha512-WBZA/m2PvkFpMGHDtsBck5P2A9G4ehLlYu4GwwICcmEm1BvYVgj00lCDxKRWLlbMlOibLaiwdQ88G5pHkSWgwA==",
    {"LICENSE": "lucide.LICENSE"},
)
ICON_NAMES: Final = (
    "archive", "archive-restore", "arrow-down", "arrow-left", "arrow-up", "bot", "check",
    "chevron-down", "chevron-left", "chevron-right", "chevron-up", "clock", "clock-arrow-up",
    "cloud", "cloud-off", "code-xml", "copy", "corner-down-right", "cpu", "download", "ellipsis",
    "ellipsis-vertical", "flame", "fold-vertical", "hand", "highlighter", "image", "info",
    "key", "keyboard", "languages", "link", "list-plus", "log-out", "menu", "message-square",
    "monitor", "moon", "panel-left", "pencil", "pin", "pin-off", "plug", "refresh-cw",
    "rotate-cw", "search", "settings", "shield-check", "square-pen", "sun", "table-2",
    "text-quote", "text-search", "trash-2", "triangle-alert", "unplug", "wrap-text", "wrench",
    "x", "zap",
)  # fmt: skip
ADMIN_ICON_NAMES: Final = (
    "archive", "ban", "bot", "check", "circle-stop", "clock", "eye-off", "flame", "fold-vertical",
    "git-branch", "hand", "headset", "history", "info", "list-end", "list-plus", "replace",
    "rotate-cw", "scroll-text", "settings", "shield-check", "sticky-note", "triangle-alert",
    "unplug", "user", "wrench",
)  # fmt: skip


def fetch(package: Package, folder: Path) -> tarfile.TarFile:
    """The package's archive, opened. Raises SystemExit if its bytes are not the pinned ones."""
    spec = f"{package.name}@{package.version}"
    out = subprocess.run(
        ["npm", "pack", "--silent", spec], cwd=folder, check=True, capture_output=True, text=True
    )
    path = folder / out.stdout.strip().splitlines()[-1]
    digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != package.integrity:
        raise SystemExit(f"{spec} has integrity sha512-{digest}; the pinned one is different.")
    return tarfile.open(path)


def read(archive: tarfile.TarFile, path: str) -> bytes:
    member = archive.extractfile(f"package/{path}")
    if member is None:
        raise SystemExit(f"{path} is no file in the archive.")
    return member.read()


def clean(content: bytes) -> bytes:
    """Without what would be asked for in vain: source maps and fonts that are not kept."""
    return OTHER_FONTS.sub(b"", SOURCE_MAP.sub(b"\n", content))


def diagram_files(archive: tarfile.TarFile) -> dict[str, str]:
    """The modules of the kept kinds of diagram and all that they import, however far down."""
    dist = [name.removeprefix("package/") for name in archive.getnames() if name.endswith(".mjs")]
    entries = tuple(f"dist/{entry}" for entry in DIAGRAM_ENTRIES)
    waiting, found = [name for name in dist if name.startswith(entries)], set[str]()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for target in IMPORTED.findall(read(archive, path).decode()):
            waiting.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
    return {path: path.replace("dist/", "mermaid/", 1) for path in sorted(found)}


def symbol(name: str, svg: str) -> str:
    """The icon's shapes as one `<symbol id="i-NAME">` without any style of its own."""
    shapes = re.search(r"<svg[^>]*>(.*)</svg>", svg, re.DOTALL)
    if shapes is None:
        raise SystemExit(f"{name} holds no drawing.")
    body = re.sub(r"\s+", " ", shapes[1]).strip().replace("> <", "><")
    return f'<symbol id="i-{name}" viewBox="0 0 24 24">{body}</symbol>'


def write_symbols(archive: tarfile.TarFile, path: Path, names: tuple[str, ...]) -> None:
    lines = [symbol(name, read(archive, f"icons/{name}.svg").decode()) for name in names]
    head = (
        f"{{% comment %}}Icons of {ICONS.name} {ICONS.version} ({ICONS.licence}), "
        "written by scripts/vendor.py.{% endcomment %}"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join([head, '<svg class="symbols" aria-hidden="true" hidden>', *lines, "</svg>", ""])
    )


def refresh() -> None:
    """Every kept file is the pinned package's; VENDORED.json and the icons' templates match."""
    VENDOR.mkdir(parents=True, exist_ok=True)
    listed = []
    with tempfile.TemporaryDirectory() as folder:
        for package in (*PACKAGES, ICONS):
            with fetch(package, Path(folder)) as archive:
                kept = {}
                files = package.files | (diagram_files(archive) if package is DIAGRAMS else {})
                for path, name in files.items():
                    content = clean(read(archive, path))
                    (VENDOR / name).parent.mkdir(parents=True, exist_ok=True)
                    (VENDOR / name).write_bytes(content)
                    kept[name] = {"from": path, "sha256": hashlib.sha256(content).hexdigest()}
                if package is ICONS:
                    write_symbols(archive, SYMBOLS, ICON_NAMES)
                    write_symbols(archive, ADMIN_SYMBOLS, ADMIN_ICON_NAMES)
            listed.append(
                {
                    "name": package.name,
                    "version": package.version,
                    "licence": package.licence,
                    "integrity": package.integrity,
                    "files": kept,
                }
            )
    (VENDOR / "VENDORED.json").write_text(json.dumps(listed, indent=2) + "\n")


def differences() -> list[str]:
    """One sentence for every kept file that is missing, changed or unknown."""
    listed = json.loads((VENDOR / "VENDORED.json").read_text())
    wanted = {name: file["sha256"] for package in listed for name, file in package["files"].items()}
    paths = [path for path in VENDOR.rglob("*") if path.is_file()]
    found = {path.relative_to(VENDOR).as_posix(): path for path in paths}
    del found["VENDORED.json"]
    wrong = [f"{name} is missing." for name in sorted(wanted.keys() - found.keys())]
    wrong += [f"{name} is not in VENDORED.json." for name in sorted(found.keys() - wanted.keys())]
    for name in sorted(wanted.keys() & found.keys()):
        if hashlib.sha256(found[name].read_bytes()).hexdigest() != wanted[name]:
            wrong.append(f"{name} is not the file that VENDORED.json names.")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, change nothing")
    if parser.parse_args().check:
        wrong = differences()
        sys.stdout.write("".join(f"{sentence}\n" for sentence in wrong))
        return 1 if wrong else 0
    refresh()
    return 0


if __name__ == "__main__":
    sys.exit(main())
