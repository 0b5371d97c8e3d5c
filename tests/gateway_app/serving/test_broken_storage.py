"""A disk that is full, a file that is broken: a real server says so, waits, and goes on."""

import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.serving.conftest import Served, Site, Tab

HUGE = resource.RLIM_INFINITY
UNDER_A_LIMIT = (
    "import os, resource, sys; size = int(sys.argv[1]);"
    " resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY));"
    " os.execv(sys.executable, [sys.executable, 'manage.py', *sys.argv[2:]])"
)
"""A disk on which no file can grow beyond a size."""


def fill_disk(served: Served, size: int) -> None:
    """From now on the server's files grow to `size` bytes at most."""
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (size, HUGE))


def test_it_waits_for_room_on_a_full_disk_and_loses_nothing(site: Site) -> None:
    gate = Gate()
    with FakeModelServer() as model:
        model.script(Script(tokens=["one ", "two"], gates={1: gate}))
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k", "HERMES_MODEL": "openai:fake-1"}
        served = site.start(**env).ready()
        with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
            tab.ask("hello", protocol="hermes.v1")
            made = tab.ask("session.create", clientMessageId="new")["result"]["session"]["id"]
            tab.ask("session.subscribe", sessionId=made)
            sent = tab.ask("message.send", sessionId=made, clientMessageId="a", content="hello")
            assert sent["result"]["status"] == "running"
            tab.event("TEXT_MESSAGE_CONTENT")
            fill_disk(served, 4096)
            gate.release()
            tab.until(lambda frame: frame.get("type") == "storage")
            assert tab.frames[-1]["storing"] is False
            ready = served.get("/readyz")
            assert ready.status_code == 503
            assert "waits" in ready.json()["storage"]
            lost = tab.ask("message.send", sessionId=made, clientMessageId="b", content="more")
            assert lost["error"]["retryable"]
            assert "send it again" in lost["error"]["message"]
            fill_disk(served, HUGE)
            tab.event("RUN_FINISHED")
            again = tab.ask("message.send", sessionId=made, clientMessageId="b", content="more")
            assert again["ok"]
            assert again["result"]["replayed"] is False
            tab.event("RUN_FINISHED")
            assert served.get("/readyz").status_code == 200
        assert served.end(signal.SIGTERM) == 0
    texts = site.sql("SELECT parts FROM sessions_app_message WHERE kind IN ('user', 'assistant')")
    assert len(texts) == 4
    assert any("one two" in parts for (parts,) in texts)


def spoil_header(file: Path) -> None:
    file.write_bytes(b"this is no database at all" * 400)


def spoil_pages(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"\x55" * (len(whole) - 4096))


@pytest.mark.parametrize("spoil", [spoil_header, spoil_pages])
def test_it_refuses_a_file_that_is_broken(site: Site, spoil: Callable[[Path], None]) -> None:
    spoil(site.file)
    done = site.manage("serve", "--port", "0")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert f"The database {site.file} cannot be" in done.stdout


def migrated_on_a_disk_of(site: Site, size: int) -> str:
    """What `migrate --backup` says where no file can be larger. It fails, without a traceback."""
    program = ["-c", UNDER_A_LIMIT, str(size), "migrate", "--backup"]
    served = site.keep(Served(site.data_dir, *program))
    assert served.rest() == 1
    said = "\n".join(served.said)
    assert "Traceback" not in said
    return said


def test_it_migrates_nothing_where_no_backup_fits(site: Site) -> None:
    site.sql("DELETE FROM django_migrations WHERE app = 'sessions'")
    site.sql("DROP TABLE django_session")
    assert "Nothing was migrated" in migrated_on_a_disk_of(site, 65_536)
    assert list((site.data_dir / "backups").iterdir()) == []
    assert "cannot be used" in migrated_on_a_disk_of(site, 8192)
    assert site.manage("migrate", "--backup").returncode == 0


def test_it_migrates_no_database_that_is_out_of_reach(site: Site) -> None:
    done = site.manage("migrate", DATABASE_URL="postgres://nobody@127.0.0.1:1/none")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert "Check DATABASE_URL" in done.stdout
