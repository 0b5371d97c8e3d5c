"""Collected static files: written when stale, once, under immutable names."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.staticfiles.storage import staticfiles_storage
from django.templatetags.static import static

from gateway_app.serving.static_files import collect_if_stale
from hermes_site.static import with_static_files


@pytest.fixture
def root(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """An empty STATIC_ROOT under the product's own storage, with one static file of a site."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "main.js").write_text('import { b } from "./b.js";\nb();\n')
    (source / "b.js").write_text("export const b = () => 1;\n")
    settings.STATIC_ROOT = tmp_path / "collected"
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "hermes_site.storage.HashedStaticFiles"}
    }
    yield settings.STATIC_ROOT
    staticfiles_storage._setup()


async def fetch(
    path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    wire = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": wire}
    communicator = ApplicationCommunicator(with_static_files(elsewhere), scope)
    await communicator.send_input({"type": "http.request", "body": b""})
    start = await communicator.receive_output()
    body = b""
    while True:
        part = await communicator.receive_output()
        body += part.get("body", b"")
        if not part.get("more_body"):
            break
    await communicator.wait()
    answered = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], answered, body


def test_it_collects_once_and_again_when_a_source_changes(root: Path) -> None:
    assert collect_if_stale()
    first = static("main.js")
    assert not collect_if_stale()
    source = root.parent / "source" / "b.js"
    source.write_text("export const b = () => 2;\n")
    assert collect_if_stale()
    assert not collect_if_stale()
    assert static("main.js") != first
    assert (root / Path(first).name).exists(), "open pages still ask for the old name"


def test_it_collects_what_was_cut_off_between_copies_and_manifest(root: Path) -> None:
    collect_if_stale()
    (root / "staticfiles.json").unlink()
    assert collect_if_stale()
    assert not collect_if_stale()


def test_it_collects_a_source_that_is_older_than_its_copy(root: Path) -> None:
    import os

    collect_if_stale()
    source = root.parent / "source" / "b.js"
    source.write_text("export const b = () => 3;\n")
    os.utime(source, (1, 1))
    assert collect_if_stale()
    assert not collect_if_stale()


async def test_it_serves_hashed_names_for_ever_and_plain_names_briefly(root: Path) -> None:
    await asyncio.to_thread(collect_if_stale)
    paths = json.loads((root / "staticfiles.json").read_text())["paths"]
    status, headers, body = await fetch(f"/static/{paths['main.js']}")
    assert status == 200
    assert "immutable" in headers["cache-control"]
    assert headers["content-type"].startswith("text/javascript")
    assert headers["x-content-type-options"] == "nosniff"
    assert f'"./{paths["b.js"]}"'.encode() in body, "imports name the hashed file"
    status, headers, _ = await fetch("/static/main.js")
    assert status == 200
    assert "immutable" not in headers["cache-control"]


async def test_it_answers_conditions_ranges_and_methods(root: Path) -> None:
    await asyncio.to_thread(collect_if_stale)
    _, headers, body = await fetch("/static/b.js")
    assert (await fetch("/static/b.js", if_none_match=headers["etag"]))[0] == 304
    assert (await fetch("/static/b.js", method="HEAD"))[2] == b""
    assert (await fetch("/static/b.js", method="POST"))[0] == 405
    part = await fetch("/static/b.js", range="bytes=0-5")
    assert (part[0], part[2]) == (206, body[:6])


async def test_it_leaves_everything_else_to_the_application(root: Path) -> None:
    await asyncio.to_thread(collect_if_stale)
    for path in ("/", "/static/", "/static/none.js", "/static/../source/b.js", "/static//b.js"):
        assert (await fetch(path))[0] == 299


def test_it_lets_frames_of_another_origin_read_the_diagrams_modules_and_nothing_else(
    settings: Any,
) -> None:
    settings.DEBUG = True
    library = "/static/gateway_app/vendor/mermaid/mermaid.esm.min.mjs"
    _, opened, _ = asyncio.run(fetch(library))
    _, closed, _ = asyncio.run(fetch("/static/gateway_app/js/chat.js"))
    assert opened["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in closed
