"""Why `serve` would not start. Every refusal is one sentence that says the mend."""

import asyncio
import ipaddress
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, OutputWrapper
from django.db import DatabaseError, Error, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from gateway_app import readiness
from gateway_app.config import gateway_config
from gateway_app.migration_state import missing_migrations, unknown_migrations
from gateway_app.providers.base import ModelInvalid
from gateway_app.providers.registry import Providers
from gateway_app.serving.locks import DatabaseInUse, ServingLock, only_server, starting
from sessions_app import clock


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches `address`. A name other than localhost may be public."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def check_options(*, address: str, workers: int) -> None:
    """The configuration fits the address it is to be served at."""
    env = settings.ENVIRONMENT
    if workers < 1:
        raise CommandError(f"{workers} workers serve nothing. Set --workers to 1 or more.")
    if workers > 1:
        need_redis("Several workers tell each other over Redis what is new in a conversation.")
    if env.turns != "inline":
        need_redis("Turns that run in other processes are announced over Redis.")
    if is_loopback(address):
        return
    if "*" in settings.ALLOWED_HOSTS:
        raise CommandError(
            f"ALLOWED_HOSTS=* on the public address {address} would let any website use this"
            " server. List the host names that people use."
        )
    if not env.debug and env.secret_key is None:
        raise CommandError(
            f"SECRET_KEY must be set to serve at the public address {address}. Set it to a long"
            " random text that stays the same."
        )


def need_redis(why: str) -> None:
    """Raises CommandError where there is no channel layer between processes."""
    if settings.ENVIRONMENT.redis_url is None:
        raise CommandError(
            f"{why} Set REDIS_URL, or serve from one process: --workers 1 and HERMES_TURNS=inline."
        )


def check_model() -> None:
    """HERMES_MODEL can be had as it is configured, and HERMES_LOCAL_URL, if set, answers."""
    config = gateway_config()
    try:
        if config.default_model:
            Providers(config).check_default()
    except ModelInvalid as exc:
        raise CommandError(f"{exc} HERMES_MODEL is {config.default_model}.") from exc
    if config.local_url:
        address = urlsplit(config.local_url)
        port = address.port or (443 if address.scheme == "https" else 80)
        try:
            socket.create_connection((address.hostname or "", port), timeout=5).close()
        except OSError as exc:
            raise CommandError(
                f"No local model answers at HERMES_LOCAL_URL, {config.local_url}. Start `python"
                " manage.py localmodel` there, or unset it."
            ) from exc


def check_database() -> None:
    """The database answers. Asked past the pool, which would hide the reason and wait longer."""
    probe = connection.copy()
    options = probe.settings_dict["OPTIONS"]
    probe.settings_dict["OPTIONS"] = {key: options[key] for key in options if key != "pool"}
    try:
        probe.ensure_connection()
    except (Error, OSError) as exc:
        reason = str(exc).strip().splitlines()[0].rstrip(".")
        name = probe.settings_dict["NAME"]
        mend = _way_to_open(probe.vendor, name)
        raise CommandError(f"The database {name} cannot be opened: {reason}. {mend}") from exc
    finally:
        probe.close()


def _way_to_open(vendor: str, name: str) -> str:
    if vendor != "sqlite":
        return (
            "Check DATABASE_URL, that PostgreSQL runs there, and that the database was made:"
            f" createdb {name}"
        )
    folder = Path(name).parent
    if not folder.is_dir():
        return f"Make the folder {folder}, or set DATABASE_URL to another file."
    return "Restore a backup, or set DATABASE_URL to another file."


def unusable(connection: BaseDatabaseWrapper, error: Exception) -> str:
    """Why a database that was opened cannot be used."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    name = connection.settings_dict["NAME"]
    return f"The database {name} cannot be used: {reason}. Mend it, or restore a backup."


def serve_alone(held: ExitStack) -> None:
    """No other server uses this SQLite file as long as `held`, unless both have Redis."""
    wakes_others = bool(settings.ENVIRONMENT.redis_url)
    try:
        held.enter_context(only_server(connection, wakes_others=wakes_others))
    except DatabaseInUse as exc:
        raise CommandError(str(exc)) from exc
    except OSError as exc:
        raise CommandError(f"{exc.filename} cannot be written: {exc.strerror}.") from exc


def take_database(lock: ServingLock, *, migrate: bool, stdout: OutputWrapper) -> None:
    """The schema is this version's, and `lock` keeps migrations away.

    Of servers that start together with `migrate` one migrates, the others wait for it.
    """
    _refuse_newer()
    if migrate:
        with starting(connection):
            if _lacks():
                call_command("migrate", interactive=False, backup=True, verbosity=0, stdout=stdout)
            lock.acquire()
    lock.acquire()
    if lacks := _lacks():
        raise CommandError(
            f"The database lacks {lacks}. Run `python manage.py migrate`, or start with --migrate."
        )
    _refuse_read_only()


def _lacks() -> str | None:
    """What a migration would bring."""
    if missing := missing_migrations(connection):
        return f"{len(missing)} migrations of this version"
    if wrong := clock.differences(connection):
        return f"this version's transcript clock ({', '.join(wrong)})"
    return None


def _refuse_newer() -> None:
    if newer := unknown_migrations(connection):
        raise CommandError(
            f"The database is newer than this version of Hermes (it has {newer[-1]})."
            " Install the version that migrated it, or restore a backup."
        )


def _refuse_read_only() -> None:
    """Something is written, though no row changes: only the database knows what it lets us do."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_migrations SET name = name WHERE 1 = 0")
    except DatabaseError as exc:
        reason = str(exc).strip().splitlines()[0].rstrip(".")
        name = connection.settings_dict["NAME"]
        raise CommandError(
            f"The database {name} cannot be written: {reason}."
            " Give it to the user that runs Hermes, with the right to write."
        ) from exc


def check_channel_layer() -> None:
    state = asyncio.run(readiness.channel_layer_part())
    if state == readiness.REFUSED:
        raise CommandError(f"{state} Set redis://:PASSWORD@HOST:PORT/DB, as Redis knows it.")
    if state != readiness.OK:
        raise CommandError("Redis does not answer. Check REDIS_URL, or unset it.")
