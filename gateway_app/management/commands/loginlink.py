"""`manage.py loginlink USER`: a one-time login link, alone on its line."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway_app.credentials import create_login_link
from gateway_app.serving.address import kept_address
from gateway_app.serving.first_start import login_address


class Command(BaseCommand):
    help = "Prints a link that logs a person in once, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--base-url",
            default=settings.ENVIRONMENT.public_url or kept_address(settings.ENVIRONMENT.data_dir),
            help="where people reach this server (default: HERMES_PUBLIC_URL, or where it was"
            " served last, %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['username']!r}.")
        self.stdout.write(login_address(create_login_link(user), options["base_url"]))
