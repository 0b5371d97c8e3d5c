"""The German catalogues: whole, compiled, carried into the page, chosen by the person."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from babel.messages import mofile
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from gateway_app.serving import catalogues
from gateway_app.serving.catalogues import compile_if_stale
from gateway_app.templatetags.catalogue import browser_messages
from tests.factories import UserFactory

ROOT = Path(__file__).resolve().parent.parent
CATALOGUES = sorted((ROOT / "locale").glob("*/LC_MESSAGES/*.po"))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("catalogue", ROOT / "scripts/catalogue.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_it_translates_every_message_in_use(script: ModuleType, path: Path) -> None:
    """Run `python scripts/catalogue.py` after adding a string, then write its German."""
    assert script.faults(script.brought_up(path)) == []


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_it_keeps_no_message_that_is_out_of_use(script: ModuleType, path: Path) -> None:
    assert path.read_bytes() == script.rendered(script.brought_up(path))


def test_it_finds_messages_in_scripts_templates_and_code(script: ModuleType) -> None:
    assert script.in_use("djangojs").get("Connected again")
    assert script.in_use("django").get("Skip to the message field")


def test_it_tells_of_what_is_left_to_translate(script: ModuleType) -> None:
    catalogue = script.brought_up(CATALOGUES[-1])
    catalogue.add("A message", string="")
    catalogue.add("%(count)s files", string="Dateien")
    catalogue.add(("%s day", "%s days"), string=("%s Tag", ""))
    assert len(script.faults(catalogue)) == 3


def test_it_compiles_what_is_older_than_its_source(tmp_path: Path, settings: Settings) -> None:
    folder = tmp_path / "de/LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "djangojs.po").write_bytes(CATALOGUES[-1].read_bytes())
    settings.LOCALE_PATHS = [tmp_path]
    assert compile_if_stale() == [folder / "djangojs.mo"]
    assert compile_if_stale() == []
    os.utime(folder / "djangojs.po", (2_000_000_000, 2_000_000_000))
    assert compile_if_stale() == [folder / "djangojs.mo"]


COMPILES = """
import sys
from django.conf import settings
settings.configure(LOCALE_PATHS=[sys.argv[1]])
from gateway_app.serving import catalogues
from gateway_app.serving.catalogues import compile_if_stale
compile_if_stale()
"""


def test_it_compiles_while_another_process_does(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "de/LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "djangojs.po").write_bytes(CATALOGUES[-1].read_bytes())
    settings.LOCALE_PATHS = [tmp_path]

    def write_second(*args: Any) -> None:
        subprocess.run([sys.executable, "-c", COMPILES, str(tmp_path)], cwd=ROOT, check=True)
        mofile.write_mo(*args)

    monkeypatch.setattr(catalogues, "write_mo", write_second)
    assert compile_if_stale() == [folder / "djangojs.mo"]
    assert sorted(path.name for path in folder.iterdir()) == ["djangojs.mo", "djangojs.po"]


def test_it_gives_the_browser_plurals_as_lists() -> None:
    messages = browser_messages("de")
    assert messages["Connected again"] == "Wieder verbunden"
    one, other = messages["Answer finished, %s word"]
    assert messages["key\x04Ctrl"] == "Strg"
    assert one.endswith("Wort") and other.endswith("Wörter")
    assert browser_messages("en") == {}


def test_it_gives_the_browser_contexts_in_front_of_the_message() -> None:
    messages = browser_messages("de")
    assert messages["a message that waits\x04Next"] == "Als Nächstes"


@pytest.fixture
def visitor(client: Client, db: None) -> Client:
    user: User = UserFactory(username="ann")
    client.force_login(user)
    return client


def catalogue_of(client: Client, **headers: str) -> tuple[str, dict[str, object]]:
    text = client.get("/", headers=headers).content.decode()
    found = re.search(r'<script id="catalogue" type="application/json">(.*?)</script>', text)
    assert found
    return text, json.loads(found[1])


@pytest.mark.parametrize(("asked", "given"), [("de-AT,de;q=0.9", "de"), ("fr", "en"), ("", "en")])
def test_it_speaks_the_browsers_language_or_english(
    visitor: Client, asked: str, given: str
) -> None:
    text, catalogue = catalogue_of(visitor, accept_language=asked)
    assert f'<html lang="{given}" dir="ltr">' in text
    assert catalogue["language"] == given
    assert bool(catalogue["messages"]) is (given == "de")


def test_it_lets_a_person_choose_a_language(visitor: Client) -> None:
    assert visitor.get("/i18n/language/", {"language": "de"}).cookies.get("django_language") is None
    answer = visitor.post("/i18n/language/", {"language": "de", "next": "/"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    cookie = answer.cookies["django_language"]
    assert (cookie.value, cookie["samesite"], cookie["httponly"]) == ("de", "Lax", True)
    text, _ = catalogue_of(visitor, accept_language="en")
    assert '<html lang="de" dir="ltr">' in text


def test_it_takes_a_choice_only_with_the_forms_token() -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post("/i18n/language/", {"language": "de"}).status_code == 403
