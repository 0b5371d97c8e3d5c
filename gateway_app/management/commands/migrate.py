"""Django's `migrate`, alone with the database while it runs."""

from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections

from gateway_app.migration_state import missing_migrations
from gateway_app.serving.backup import BackupFailed, back_up
from gateway_app.serving.leaving import ending_when_told
from gateway_app.serving.locks import DatabaseInUse, migrating

STOPPED: Final = "Stopped before it was done. Nothing is lost; migrate again."


class Command(migrate.Command):
    """Refuses while `serve` uses the SQLite file; waits for another migration on PostgreSQL."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--backup",
            action="store_true",
            help="First copy a SQLite file to backups/ in the data directory, if anything changes.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        connection = connections[options["database"]]
        try:
            with ending_when_told(self.stdout.write, STOPPED), migrating(connection):
                if options["backup"]:
                    self._back_up(options["database"])
                super().handle(*args, **options)
        except DatabaseInUse as exc:
            raise CommandError(str(exc)) from exc
        except BackupFailed as exc:
            raise CommandError(f"{exc} Nothing was migrated; make room, then try again.") from exc
        except OSError as exc:
            raise CommandError(f"{exc.filename} cannot be written: {exc.strerror}.") from exc

    def _back_up(self, alias: str) -> None:
        connection = connections[alias]
        empty = not connection.introspection.table_names()
        if connection.vendor != "sqlite" or empty or not missing_migrations(connection):
            return
        database = Path(connection.settings_dict["NAME"])
        path = back_up(database, settings.ENVIRONMENT.data_dir / "backups")
        self.stdout.write(f"The database was copied to {path}.")
