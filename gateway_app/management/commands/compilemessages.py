"""Django's `compilemessages`, for machines without gettext: Babel compiles."""

from typing import Any

from django.core.management.base import BaseCommand

from gateway_app.serving.catalogues import compile_if_stale


class Command(BaseCommand):
    help = "Compiles the translations that are newer than their compiled form."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        for path in compile_if_stale():
            self.stdout.write(f"{path} was compiled.")
