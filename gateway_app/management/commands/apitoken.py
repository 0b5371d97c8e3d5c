"""`manage.py apitoken create|list|revoke`: tokens for the API and the websocket."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gateway_app import credentials
from gateway_app.models import ApiToken


class Command(BaseCommand):
    help = "Makes, lists and revokes API tokens."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="print a new token, alone on the last line")
        create.add_argument("username")
        create.add_argument("--name", default="", help="what it is for")
        create.add_argument("--days", type=int, help="how long it lives (default: for ever)")
        shown = actions.add_parser("list", help="a person's tokens, by their first characters")
        shown.add_argument("username")
        revoke = actions.add_parser("revoke", help="end a token")
        revoke.add_argument("prefix", help="its first characters, as `list` shows them")

    def handle(self, *args: Any, **options: Any) -> None:
        match options["action"]:
            case "create":
                self._create(options["username"], options["name"], options["days"])
            case "list":
                self._list(options["username"])
            case "revoke":
                self._revoke(options["prefix"])

    def _create(self, username: str, name: str, days: int | None) -> None:
        if days is not None and days < 1:
            raise CommandError("--days must be at least 1.")
        expires_at = None if days is None else timezone.now() + timedelta(days=days)
        user = _user(username)
        token = credentials.create_token(user=user, name=name, expires_at=expires_at)
        self.stdout.write("The token is shown once; only its hash is stored.")
        self.stdout.write(token)

    def _list(self, username: str) -> None:
        for token in ApiToken.objects.filter(user=_user(username)).order_by("created_at", "pk"):
            self.stdout.write(
                f"{token.prefix}  {_state(token)}, made {_day(token.created_at)},"
                f" last used {_day(token.last_used_at)}  {token.name}".rstrip()
            )

    def _revoke(self, prefix: str) -> None:
        tokens = list(ApiToken.objects.filter(prefix__startswith=prefix, revoked_at=None)[:2])
        if len(prefix) < len(credentials.TOKEN_PREFIX) + 4 or not tokens:
            raise CommandError(f"No token that could be revoked begins with {prefix!r}.")
        if len(tokens) > 1:
            raise CommandError(f"More than one token begins with {prefix!r}. Give more of it.")
        credentials.revoke_token(tokens[0])
        self.stdout.write(f"{tokens[0].prefix} of {tokens[0].user} is revoked.")


def _user(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    return user


def _state(token: ApiToken) -> str:
    if token.revoked_at:
        return "revoked"
    if token.expires_at is None:
        return "never expires"
    expired = token.expires_at <= timezone.now()
    return f"{'expired' if expired else 'expires'} {_day(token.expires_at)}"


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "never"
