"""`manage.py localmodel`: the embedded model alone, for HERMES_LOCAL_URL of other processes."""

from argparse import ArgumentParser
from ipaddress import ip_address

from django.core.management.base import BaseCommand, CommandError

from gateway_app.local_model.packages import LocalModelError, model_file
from gateway_app.local_model.running import listen, run


class Command(BaseCommand):
    help = "Runs the embedded model and prints its URL, which HERMES_LOCAL_URL takes."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=0, help="0 takes any free port")

    def handle(self, *, host: str, port: int, **options: object) -> None:
        try:
            model_file()
        except LocalModelError as exc:
            raise CommandError(str(exc)) from exc
        try:
            listener = listen(host, port)
        except (OSError, OverflowError) as exc:
            raise CommandError(f"The address {host}:{port} cannot be used: {exc}.") from exc
        if not ip_address(listener.getsockname()[0]).is_loopback:
            self.stderr.write("Whoever reaches this address can use the model: it has no key.")
        run(listener)
