"""What a process has loaded is kept out of the garbage collector's way."""

import subprocess
import sys
from pathlib import Path

from tests.gateway_app.serving.conftest import PATIENCE_S, ROOT, environment

SCRIPT = """
import gc
import django
django.setup()
from gateway_app.serving.loaded import keep_what_is_loaded
import gateway_app.serving.server
keep_what_is_loaded()
from django.test import Client
from gateway_app.providers.cost import cost_usd
from gateway_app.providers.base import Usage
cost_usd("openai", "gpt-4o", Usage(1, 1, 0))
Client().get("/healthz")
print(gc.get_freeze_count(), len(gc.get_objects()))
"""
"""Then what the first request and the first answer would have loaded."""


def test_it_leaves_little_to_go_through(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment(tmp_path, DJANGO_SETTINGS_MODULE="hermes_site.settings"),
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    frozen, left = map(int, run.stdout.split()[-2:])
    assert frozen > 100_000
    assert left < 20_000, left
