"""`manage.py runworker turns`: Channels' worker command, for the channel `turns` of Hermes."""

import asyncio
from contextlib import ExitStack
from typing import Any

from channels.management.commands import runworker
from django.core.management.base import CommandError
from django.db import connection, connections

from gateway_app.serving import preflight
from gateway_app.serving.leaving import ending_when_told
from gateway_app.serving.locks import ServingLock
from gateway_app.serving.turn_worker import run_turns

CHANNEL = "turns"


class Command(runworker.Command):  # type: ignore[misc]  # Channels has no types
    help = "Runs turns that other processes accepted (`runworker turns`)."

    def handle(self, *args: Any, **options: Any) -> None:
        """Ends by SIGTERM or SIGINT, after the drain; other channels are Channels' own business."""
        if options["channels"] != [CHANNEL]:
            super().handle(*args, **options)
            return
        with ending_when_told(self._say, "Stopped before a turn could run here."):
            self._run_turns()

    def _run_turns(self) -> None:
        preflight.need_redis("Workers hear of turns over Redis.")
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
            failure = asyncio.run(run_turns(self._say))
        if failure:
            raise CommandError(failure)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
