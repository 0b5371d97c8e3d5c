"""docs/api.md describes every operation, code and field, and its examples run as they stand."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

from django.conf import settings

from gateway_app.api.errors import STATUSES
from gateway_app.api.routes import api
from gateway_app.config import GatewayConfig
from gateway_app.models import Turn
from gateway_app.selectors.exports import FORMS
from gateway_app.transfer_lines import MessageLine, SessionLine, TurnLine
from tests.docs.reading import document, section
from tests.fake_model_server import FakeModelServer
from tests.gateway_app.serving.conftest import Site

PAGE: Final = document("docs/api.md")
TOKEN_LINE: Final = "$(.venv/bin/python manage.py apitoken create admin | tail -n 1)"
ADDRESS: Final = "http://127.0.0.1:8000"


def test_it_describes_every_operation_and_no_other() -> None:
    there = {
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for path, operations in api.get_openapi_schema()["paths"].items()
        for method in operations
    }
    assert set(re.findall(r"`((?:GET|POST|PATCH|DELETE) /[a-z_/{}]+)`", PAGE)) == there


def test_it_gives_every_code_its_status() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| (\d+) \|", section(PAGE, "## Errors"), re.MULTILINE)
    assert {code: int(status) for code, status in rows} == STATUSES


def test_it_names_every_field_of_a_file() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| (.+) \|$", section(PAGE, "## Export and import"), re.M)
    named = {kind: set(re.findall(r"`(\w+)`", fields)) for kind, fields in rows}
    assert named == {
        kind.__struct_config__.tag: set(kind.__struct_encode_fields__)
        for kind in (SessionLine, TurnLine, MessageLine)
    }
    assert all(f"`form={form}`" in PAGE for form in FORMS)


def test_it_gives_the_limits_and_states_that_hold() -> None:
    config = GatewayConfig()
    assert f"an import above {config.import_bytes // 2**20} MiB" in PAGE
    assert f"above {settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20} MiB," in PAGE
    states = section(PAGE, "## Turns").split("\n```")[0]
    assert all(f"`{state}`" in states for state in Turn.State.values)


def test_its_examples_run(site: Site, tmp_path: Path) -> None:
    examples = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    assert examples.count(TOKEN_LINE) == examples.count(ADDRESS) == 1
    with FakeModelServer() as model:
        served = site.start(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test").ready()
        script = examples.replace(TOKEN_LINE, site.token()).replace(ADDRESS, served.url)
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", script],
            cwd=tmp_path, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert served.end() == 0
    assert (tmp_path / "feathers.md").read_text().startswith("# Feathers\n")
    assert '"Why do birds have them?"' in (tmp_path / "feathers.jsonl").read_text()
    assert site.sql("SELECT count(*) FROM sessions_app_session WHERE deleted_at IS NULL") == [(2,)]
