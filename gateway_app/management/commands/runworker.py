"""`manage.py runworker turns`: Channels' worker command, for the channel `turns` of Hermes."""

import asyncio
from contextlib import ExitStack
from typing import Any

from channels.management.commands import runworker
from django.core.management.base import CommandError, CommandParser
from django.db import connection, connections

from gateway_app.serving import preflight
from gateway_app.serving.leaving import ending_when_told
from gateway_app.serving.locks import ServingLock
from gateway_app.serving.port import port_number
from gateway_app.serving.turn_worker import run_turns

CHANNEL = "turns"


class Command(runworker.Command):  # type: ignore[misc]  # Channels has no types
    help = "Runs turns that other processes accepted (`runworker turns`)."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--port",
            type=port_number,
            help="of `turns`: answers /healthz, /readyz and /metrics there; default: no port",
        )
        parser.add_argument("--host", default="127.0.0.1", help="of that port; %(default)s")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ends by SIGTERM or SIGINT, after the drain; other channels are Channels' own business."""
        if options["channels"] != [CHANNEL]:
            super().handle(*args, **options)
            return
        with ending_when_told(self._say, "Stopped before a turn could run here."):
            self._run_turns(options["host"].strip("[]"), options["port"])

    def _run_turns(self, address: str, port: int | None) -> None:
        preflight.need_redis("Workers hear of turns over Redis.")
        if port is not None:
            preflight.check_options(address=address, workers=1)
        preflight.check_database()
        with ExitStack() as held:
            lock = held.enter_context(ServingLock(connection))
            preflight.serve_alone(held)
            try:
                preflight.take_database(lock, migrate=False, stdout=self.stdout)
                preflight.check_channel_layer()
            except OSError as exc:
                raise CommandError(f"{exc.filename} cannot be written: {exc.strerror}.") from exc
            connections.close_all()
            if port is None:
                failure = asyncio.run(run_turns(self._say))
            else:
                # here, not above: Daphne brings a reactor, which only a port needs
                from gateway_app.serving.worker_port import run_turns_beside_port

                failure = run_turns_beside_port(address, port, self._say)
        if failure:
            raise CommandError(failure)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
