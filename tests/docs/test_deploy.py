"""deploy/ names variables, commands, options and files that there are, and keeps to the drain."""

import re
from pathlib import Path
from typing import Final

import pytest
from django.core.management import get_commands, load_command_class

from gateway_app.config import GatewayConfig
from gateway_app.serving.group import LEAVING_S
from hermes_site.environment import read_environment
from tests.docs.reading import ROOT, document
from tests.docs.test_configuration_page import Asked

FILES: Final = sorted(path.name for path in (ROOT / "deploy").iterdir() if path.is_file())
OTHERS: Final = {
    "PYTHONUNBUFFERED", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD",
}  # fmt: skip
"""Variables of Python and PostgreSQL."""


def text_of(name: str) -> str:
    return document(f"deploy/{name}")


@pytest.mark.parametrize("name", FILES)
def test_it_names_variables_that_hermes_reads(name: str) -> None:
    asked = Asked()
    read_environment(asked)
    named = set(re.findall(r"\b([A-Z]+_[A-Z_]+)(?=[=:])", text_of(name)))
    assert named <= asked.names | OTHERS, named - asked.names


@pytest.mark.parametrize("name", FILES)
def test_it_runs_commands_and_options_that_there_are(name: str) -> None:
    text = text_of(name).replace('", "', " ")
    found = re.findall(r"manage\.py (\w+)((?: [\w.-]+)*)", text)
    found += re.findall(r'\["(serve)((?: [\w.-]+)*)', text)
    for command, rest in found:
        assert command in get_commands(), command
        made = load_command_class(get_commands()[command], command)
        made.create_parser("manage.py", command).parse_args(rest.split())


@pytest.mark.parametrize("name", ["compose.yaml", "hermes.service", "hermes-turns@.service"])
def test_it_lets_the_drain_end(name: str) -> None:
    [seconds] = set(re.findall(r"(?:stop_grace_period: |TimeoutStopSec=)(\d+)", text_of(name)))
    assert int(seconds) >= GatewayConfig().drain_s + LEAVING_S


def test_it_copies_and_mounts_what_is_there() -> None:
    for line in re.findall(r"^COPY (.+) \S+$", text_of("Dockerfile"), re.MULTILINE):
        assert all((ROOT / source).exists() for source in line.split())
    assert "./nginx.conf:" in text_of("compose.yaml")
    assert "dockerfile: deploy/Dockerfile" in text_of("compose.yaml")


def test_it_takes_bodies_as_large_as_hermes_does() -> None:
    [allowed] = re.findall(r"client_max_body_size (\d+)m", text_of("nginx.conf"))
    assert int(allowed) * 1024 * 1024 >= GatewayConfig().import_bytes


def test_it_passes_on_what_the_door_looks_at() -> None:
    passed = set(re.findall(r"proxy_set_header (\S+)", text_of("nginx.conf")))
    assert {"Host", "X-Forwarded-Proto", "X-Forwarded-For", "Upgrade", "Connection"} <= passed


def test_it_is_described() -> None:
    page = document("docs/scaling.md")
    assert all(f"deploy/{name}" in page for name in FILES), FILES
    assert Path(ROOT / ".dockerignore").exists()
