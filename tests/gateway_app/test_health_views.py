"""What a supervisor is told, part by part."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from gateway_app.config import gateway_config
from gateway_app.host import GatewayHost, set_host
from sessions_app import clock

pytestmark = pytest.mark.django_db

PARTS = {"database": "ok", "migrations": "ok", "clock": "ok", "channelLayer": "ok", "storage": "ok"}


@pytest.fixture(autouse=True)
def process() -> Iterator[GatewayHost]:
    """A gateway of this process that was not started."""
    host = GatewayHost(gateway_config())
    set_host(host)
    yield host
    set_host(None)


def asked(client: Client, status: int) -> dict[str, Any]:
    answer = client.get("/readyz")
    assert answer.status_code == status, answer.content
    parts: dict[str, Any] = answer.json()
    return parts


def test_it_is_ready_when_every_part_is(client: Client) -> None:
    assert asked(client, 200) == {"ready": True, "draining": False, **PARTS}


def test_it_takes_no_traffic_while_it_drains(client: Client, process: GatewayHost) -> None:
    process.runner.draining = True
    assert asked(client, 503) == {"ready": False, "draining": True, **PARTS}
    assert client.get("/healthz").status_code == 200


def test_it_logs_no_error_for_a_probe_that_is_told_to_wait(
    client: Client, process: GatewayHost, caplog: pytest.LogCaptureFixture
) -> None:
    process.runner.draining = True
    asked(client, 503)
    assert caplog.records == []
    client.get("/nothing-here")
    assert [record.name for record in caplog.records] == ["django.request"]


def test_it_says_that_migrations_are_missing_or_newer(client: Client) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("gateway_app", "0001_initial")
    assert "python manage.py migrate" in asked(client, 503)["migrations"]
    recorder.record_applied("gateway_app", "0001_initial")
    recorder.record_applied("gateway_app", "9999_later")
    assert "gateway_app.9999_later" in asked(client, 503)["migrations"]


def test_it_says_that_the_clock_is_not_in_place(client: Client) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("DROP TRIGGER hermes_message_insert")
        else:
            cursor.execute(f"ALTER TABLE {clock.MESSAGE} DISABLE TRIGGER USER")
    parts = asked(client, 503)
    assert "python manage.py migrate" in parts.pop("clock")
    assert parts == {"ready": False, "draining": False} | {k: "ok" for k in PARTS if k != "clock"}


def test_it_says_that_the_channel_layer_is_away(client: Client, settings: Any) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": ["redis://user:secret@127.0.0.1:1/0"]},
        }
    }
    parts = asked(client, 503)
    assert parts.pop("channelLayer") == "The channel layer does not answer."
    assert "secret" not in str(parts)


def test_it_takes_no_traffic_while_what_is_to_be_stored_waits(
    client: Client, process: GatewayHost
) -> None:
    process.storage.away("one")
    process.storage.away("other")
    process.storage.back("one")
    assert "waits for the database" in asked(client, 503)["storage"]
    process.storage.back("other")
    assert asked(client, 200)["storage"] == "ok"


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_it_answers_only_reads(client: Client, address: str) -> None:
    assert client.head(address).status_code == 200
    assert client.post(address).status_code == 405
