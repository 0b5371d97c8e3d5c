"""Migrations: alone with the database, after a backup, never under a running server."""

import fcntl
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder

from gateway_app.migration_state import missing_migrations, unknown_migrations
from gateway_app.serving.backup import KEPT, back_up
from gateway_app.serving.locks import ADVISORY_KEY, DatabaseInUse, migrating
from tests.gateway_app.serving.conftest import Site


def test_it_refuses_while_a_server_holds_the_file(site: Site) -> None:
    with Path(f"{site.file}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        refused = site.manage("migrate")
        assert refused.returncode == 1
        assert "Stop `manage.py serve` first, then migrate." in refused.stdout
        assert "Traceback" not in refused.stdout
        assert site.manage("migrate", "--plan").returncode == 0
    assert site.manage("migrate").returncode == 0


def test_it_backs_up_only_what_it_is_about_to_change(site: Site) -> None:
    backups = site.data_dir / "backups"
    assert site.manage("migrate", "--backup").returncode == 0
    assert not backups.exists()
    site.sql("DELETE FROM django_migrations WHERE app = 'sessions'")
    site.sql("DROP TABLE django_session")
    done = site.manage("migrate", "--backup")
    assert done.returncode == 0, done.stdout
    [copy] = backups.iterdir()
    assert str(copy) in done.stdout
    with closing(sqlite3.connect(copy)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    assert "gateway_app_agent" in tables
    assert "django_session" not in tables


def test_it_makes_no_backup_of_an_empty_database(empty_site: Site) -> None:
    assert empty_site.manage("migrate", "--backup", "--verbosity", "0").returncode == 0
    assert not (empty_site.data_dir / "backups").exists()


@pytest.mark.django_db(transaction=True)
def test_it_lets_nobody_migrate_beside_it() -> None:
    refused: list[object] = []

    def second() -> None:
        try:
            if connection.vendor == "sqlite":
                with migrating(connection):
                    refused.append(False)
            else:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [ADVISORY_KEY])
                    refused.append(not cursor.fetchone()[0])
        except DatabaseInUse:
            refused.append(True)
        finally:
            connections.close_all()

    with migrating(connection):
        _run(second)
    _run(second)
    assert refused == [True, False]


def _run(call: Callable[[], None]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


@pytest.mark.django_db
def test_it_knows_what_a_database_lacks_and_what_is_newer() -> None:
    assert missing_migrations(connection) == []
    assert unknown_migrations(connection) == []
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("gateway_app", "0001_initial")
    recorder.record_applied("sessions_app", "9999_later")
    recorder.record_applied("somebody_else", "0001_initial")
    assert missing_migrations(connection) == ["gateway_app.0001_initial"]
    assert unknown_migrations(connection) == ["sessions_app.9999_later"]


def test_it_keeps_the_last_copies_for_their_owner_only(site: Site) -> None:
    folder = site.data_dir / "backups"
    made = [back_up(site.file, folder) for _ in range(KEPT + 2)]
    assert sorted(folder.iterdir()) == made[2:]
    assert {path.stat().st_mode & 0o077 for path in made[2:]} == {0}
