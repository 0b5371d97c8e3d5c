"""docs/admin.md says what is so: words, permissions, groups, buttons, times."""

import re
from pathlib import Path
from typing import Final

import pytest
from django.contrib.auth.models import Permission
from django.urls import resolve

from gateway_app.admin import words
from gateway_app.config import GatewayConfig
from gateway_app.selectors.board import CHART_DAYS, SHARE_TURNS
from gateway_app.services.roles import ROLES
from sessions_app.services import RESTORE_DAYS
from tests.docs.reading import ROOT, document, section, table_words

PAGE: Final = document("docs/admin.md")
SHOWN: Final = "\n".join(
    path.read_text(encoding="utf-8")
    for folder, pattern in (("templates/admin", "*.html"), ("gateway_app/admin", "*.py"))
    for path in sorted(Path(ROOT / folder).rglob(pattern))
)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_it_names_the_words_that_are_shown() -> None:
    sessions = section(PAGE, "## Sessions")
    verdicts = {word.text for word in words.VERDICTS.values()}
    states = set(words.SESSION_FILTERS.values())
    assert set(table_words(sessions)) == verdicts | states
    for reason in ("rewritten", "compacted", "reconfigured"):
        assert words.REASONS[reason] in sessions
    kinds = table_words(section(PAGE, "## A transcript"))
    assert kinds == [word.text for word in words.KINDS.values()]


@pytest.mark.django_db
def test_it_names_permissions_and_groups_that_exist() -> None:
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \|.*\| (yes|no) \| (yes|no) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 10
    for app_label, codename, *given in rows:
        assert Permission.objects.filter(
            content_type__app_label=app_label, codename=codename
        ).exists()
        for (name, permissions), said in zip(ROLES.items(), given, strict=True):
            assert f"*{name}*" in PAGE
            assert (f"{app_label}.{codename}" in permissions) == (said == "yes"), (name, codename)


def test_it_names_every_permission_of_a_group() -> None:
    for permissions in ROLES.values():
        assert all(f"`{permission}`" in PAGE for permission in permissions)


def test_it_names_buttons_and_links_as_they_are_labelled() -> None:
    named = {flat(name) for name in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", PAGE)}
    elsewhere = {"Staff status", *ROLES}  # Django's own, and the groups
    models = {"Sessions", "Turns", "Agents", "API tokens"}
    sentences = {name for name in named if name.startswith("Changed at revision")}
    assert len(sentences) == 1
    for name in named - elsewhere - models - sentences:
        assert name in SHOWN, name
    assert "Changed at revision %(now)s; the agent had sent it at %(before)s" in SHOWN


def test_it_gives_addresses_and_times_that_hold() -> None:
    config, page = GatewayConfig(), flat(PAGE)
    assert resolve("/admin/board/").url_name == "board"
    for said in (
        f"for {RESTORE_DAYS} days",
        f"every {config.presence_s} seconds",
        f"gone from the list {config.lease_s} seconds",
        f"the last {CHART_DAYS} days",
        f"of the newest {SHARE_TURNS:,}",
        f"within {config.reauthorise_s} seconds",
    ):
        assert said in page, said
