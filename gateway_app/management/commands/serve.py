"""`manage.py serve`: the whole product in one process."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection, connections
from django.http.request import split_domain_port, validate_host
from django.utils.module_loading import import_string

from gateway_app.addresses import http_url
from gateway_app.config import gateway_config
from gateway_app.credentials import create_login_link
from gateway_app.providers.registry import Providers
from gateway_app.serving import preflight
from gateway_app.serving.address import keep_address
from gateway_app.serving.catalogues import compile_if_stale
from gateway_app.serving.database_room import too_little_room
from gateway_app.serving.first_start import ensure_admin, login_address
from gateway_app.serving.group import WorkerGroup
from gateway_app.serving.leaving import ending_when_told
from gateway_app.serving.locks import ServingLock
from gateway_app.serving.open_files import raise_limit, too_few
from gateway_app.serving.port import port_number
from gateway_app.serving.server import Server
from gateway_app.serving.shared_model import shared_local_model
from gateway_app.serving.static_files import collect_if_stale


class Command(BaseCommand):
    help = "Serves Hermes: web chat, admin, websocket and API."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
        parser.add_argument("--port", type=port_number, default=8000, help="default: %(default)s")
        parser.add_argument("--workers", type=int, default=1, help="serving processes")
        parser.add_argument(
            "--migrate", action="store_true", help="first back up a SQLite file and migrate"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with ending_when_told(self._say, "Stopped before it served."):
            self._run(options)

    def _run(self, options: dict[str, Any]) -> None:
        address = options["host"].strip("[]")
        preflight.check_options(address=address, workers=options["workers"])
        preflight.check_model()
        preflight.check_database()
        with ExitStack() as held:
            lock = held.enter_context(ServingLock(connection))
            preflight.serve_alone(held)
            self._make_ready(lock, migrate=options["migrate"])
            if few := too_few(raise_limit()):
                self._say(few)
            if little := too_little_room(options["workers"]):
                self._say(little)
            newcomer = _first_person()
            secret = create_login_link(newcomer) if newcomer else None
            connections.close_all()

            def announce(port: int) -> None:
                self._announce(_base_url(address, port), secret, options["workers"])

            if options["workers"] == 1:
                failure = self._serve(address, options["port"], announce)
            else:
                failure = self._serve_group(address, options, announce, lock)
        if failure:
            raise CommandError(failure)

    def _serve(self, address: str, port: int, announce: Callable[[int], None]) -> str | None:
        server = Server(
            import_string(settings.ASGI_APPLICATION),
            address=address,
            port=port,
            config=gateway_config(),
            announce=announce,
            say=self._say,
        )
        server.run()
        return server.failure

    def _serve_group(
        self,
        address: str,
        options: dict[str, Any],
        announce: Callable[[int], None],
        lock: ServingLock,
    ) -> str | None:
        with shared_local_model(gateway_config()) as local_url:
            group = WorkerGroup(
                address=address,
                port=options["port"],
                count=options["workers"],
                drain_s=gateway_config().drain_s,
                local_url=local_url,
                keep=[lock.file.fileno()] if lock.file else [],
            )
            return group.run(announce, self._say)

    def _make_ready(self, lock: ServingLock, *, migrate: bool) -> None:
        try:
            preflight.take_database(lock, migrate=migrate, stdout=self.stdout)
            preflight.check_channel_layer()
            if compile_if_stale():
                self._say("Translations were compiled.")
            if collect_if_stale():
                self._say("Static files were collected.")
        except OSError as exc:
            raise CommandError(f"{exc.filename} cannot be written: {exc.strerror}.") from exc
        except DatabaseError as exc:
            raise CommandError(preflight.unusable(connection, exc)) from exc

    def _announce(self, base_url: str, secret: str | None, workers: int) -> None:
        """Says what is served and where; a login link, if there is one, is the last line."""
        keep_address(settings.ENVIRONMENT.data_dir, base_url)
        database = connection.settings_dict["NAME"]
        layer = "Redis" if settings.ENVIRONMENT.redis_url else "in memory"
        self._say(f"Hermes serves {base_url}")
        if workers > 1:
            self._say(f"Workers: {workers}.")
        if gateway_config().turns == "workers":
            self._say("Turns run where `manage.py runworker turns` runs, and nowhere else.")
        self._say(f"Model: {_model_name(Providers(gateway_config()).site_default)}.")
        self._say(f"Database: {connection.display_name} {database}. Channel layer: {layer}.")
        if not validate_host(
            split_domain_port(urlsplit(base_url).netloc)[0], settings.ALLOWED_HOSTS
        ):
            self._say("ALLOWED_HOSTS lacks this host. Add it, or set HERMES_PUBLIC_URL.")
        if secret is not None:
            self._say("Log in as admin, once, within 15 minutes:")
            self._say(login_address(secret, base_url))

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _first_person() -> User | None:
    """`admin`, as long as they have no password."""
    try:
        return ensure_admin(settings.ENVIRONMENT.admin_password)
    except ValidationError as exc:
        raise CommandError(
            f"HERMES_ADMIN_PASSWORD is too weak. {' '.join(exc.messages)}"
            " Choose another one, or unset it and log in by the link that is printed."
        ) from exc


def _model_name(default: str) -> str:
    provider, _, model = default.partition(":")
    return f"{provider}:{model}" if model else f"the default of {provider}"


def _base_url(address: str, port: int) -> str:
    """Where people reach this server: HERMES_PUBLIC_URL, or the address that is bound."""
    if public_url := settings.ENVIRONMENT.public_url:
        return str(public_url).rstrip("/")
    return http_url("localhost" if address in {"0.0.0.0", "::"} else address, port)
