"""docs/operations.md says what is so: log lines, commands, the parts of /readyz, limits."""

import re
from pathlib import Path
from typing import Final

from django.core.management import get_commands

from gateway_app import metrics
from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.management.commands.apitoken import Command as ApiToken
from gateway_app.scrape import scrape
from gateway_app.serving.backup import KEPT
from sessions_app.services import RESTORE_DAYS
from tests.docs.reading import ROOT, document, section, table_words

PAGE: Final = document("docs/operations.md")
CODE: Final = "\n".join(
    path.read_text(encoding="utf-8")
    for room in ("gateway_app", "hermes_site", "sessions_app")
    for path in sorted(Path(ROOT / room).rglob("*.py"))
)


def test_it_quotes_lines_that_are_logged() -> None:
    logged = re.findall(r'logger\.\w+\(\s*"([^"]+)"', CODE)
    quoted = re.findall(r"`([^`]+)`", "\n".join(
        line.split("|")[1] for line in section(PAGE, "## What the log says").splitlines()
        if line.startswith("| `")
    ))  # fmt: skip
    assert len(quoted) > 5
    assert set(quoted) <= set(logged)


def test_it_names_commands_that_exist() -> None:
    commands = set(re.findall(r"manage\.py (\w+)", PAGE))
    assert commands <= set(get_commands())
    assert {"serve", "loginlink", "apitoken", "migrate"} <= commands
    parser = ApiToken().create_parser("manage.py", "apitoken")
    for action in re.findall(r"apitoken (\w+) [A-Z]+", PAGE):
        assert parser.parse_args([action, "x"]).action == action


def test_it_names_the_parts_of_readiness() -> None:
    health = section(PAGE, "## Health")
    assert set(table_words(health)) == {"/healthz", "/readyz"}
    parts = set(re.findall(r'"(database|migrations|clock)":', CODE)) | {"channelLayer"}
    assert all(f"`{part}`" in health for part in parts)


def test_it_gives_the_limits_that_hold() -> None:
    config = GatewayConfig()
    for said in (
        f"get {config.drain_s:.0f} seconds",
        f"restored for {RESTORE_DAYS}\ndays",
        f"{config.log_keep_events:,} events of a conversation",
        f"{config.log_keep_s / 86_400:.0f} days or",
        f"every {config.heartbeat_ping_s:.0f} seconds",
    ):
        assert said in PAGE, said
    assert (config.max_runs, config.resume_window_s, KEPT) == (3, 3600, 5)
    assert "dies three times, or is older than an hour" in PAGE
    assert "the last five" in PAGE


def test_it_describes_every_metric(config: GatewayConfig) -> None:
    metrics.provider_calls.labels("x", "answered").inc(0)
    text = scrape(GatewayHost(config).moment, {"queued": 0}).decode()
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    there = {name for name in kinds if not name.endswith("_created")}
    assert len(there) >= 20
    assert set(table_words(section(PAGE, "## Metrics"))) == there
