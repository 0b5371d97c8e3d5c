"""Requests that are made from the OpenAPI document, right and wrong ones, to a served process."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import pytest

from tests.fake_model_server import FakeModelServer
from tests.gateway_app.serving.conftest import ROOT, Site

pytestmark = pytest.mark.fuzz

SECONDS: Final = 30
"""How long requests are made."""
CHECKS: Final = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "response_headers_conformance", "ignored_auth",
    "unsupported_method",
)  # fmt: skip


def test_it_answers_as_its_document_says(site: Site, tmp_path: Path) -> None:
    with FakeModelServer() as model:
        served = site.start(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test").ready()
        served.allow(8 * SECONDS)
        reader = threading.Thread(target=served.rest)  # its lines would fill the pipe
        reader.start()
        token = f"Authorization: Bearer {site.token()}"
        made = served.post("/api/v1/sessions", token, {"clientMessageId": "one"})
        session_id = made["session"]["id"]
        sent = served.post(
            f"/api/v1/sessions/{session_id}/messages",
            token,
            {"clientMessageId": "m", "content": "Hello"},
        )
        config = tmp_path / "schemathesis.toml"
        config.write_text(
            "[parameters]\n"
            f'"path.session_id" = "{session_id}"\n"path.turn_id" = "{sent["turnId"]}"\n'
        )
        done = subprocess.run(
            [
                Path(sys.executable).with_name("st"), "--config-file", config, "run",
                f"{served.url}/api/v1/openapi.json", "--header", token,
                "--checks", ",".join(CHECKS), "--max-time", str(SECONDS), "--workers", "1",
                "--max-examples", "100", "--no-color", "--request-timeout", "30",
            ],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT),
                 "SCHEMATHESIS_HOOKS": "tests.gateway_app.api.generated_bodies"},
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert " FAILURES " not in said and "Network Error" not in said, said
        # Python 3.11's own fault in the generator, where it nests deep: no request was made
        assert done.returncode == 0 or "AST constructor recursion depth" in said, said
        made_up = re.search(r"(\d+) generated", done.stdout)
        assert made_up and int(made_up[1]) > 100, done.stdout
        served.process.terminate()
        reader.join()
        assert served.process.returncode == 0
    assert not [line for line in served.said if "Traceback" in line]
