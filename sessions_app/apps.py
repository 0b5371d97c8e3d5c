"""Installs the transcript clock with the schema, and checks that it is in place."""

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import Error, connections
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.translation import gettext_lazy

Plan = Iterable[tuple[Any, bool]]


class SessionsConfig(AppConfig):
    name = "sessions_app"
    verbose_name = gettext_lazy("Conversations")

    def ready(self) -> None:
        pre_migrate.connect(_before_migrate, sender=self)
        post_migrate.connect(_after_migrate, sender=self)
        checks.register(check_fields, "models")
        checks.register(check_clock, checks.Tags.database)


def _before_migrate(*, using: str, plan: Plan = (), **_: object) -> None:
    from sessions_app import clock

    connection = connections[using]
    if connection.vendor == "sqlite" and any(m.app_label == "sessions_app" for m, _ in plan):
        clock.drop(connection)


def _after_migrate(*, using: str, plan: Plan = (), **_: object) -> None:
    from sessions_app import clock

    connection = connections[using]
    if clock.SESSION not in connection.introspection.table_names():
        return
    clock.install(connection)
    if connection.vendor == "sqlite" and any(m.app_label == "sessions_app" for m, _ in plan):
        clock.tick_all(connection)


def check_fields(**_: object) -> list[checks.CheckMessage]:
    """Every field of Message is either visible to the clock or declared silent."""
    from sessions_app.models import SILENT_FIELDS, VISIBLE_FIELDS, Message

    names = {field.name for field in Message._meta.concrete_fields}
    if names == set(VISIBLE_FIELDS) | set(SILENT_FIELDS):
        return []
    stray = names ^ (set(VISIBLE_FIELDS) | set(SILENT_FIELDS))
    return [
        checks.Error(
            f"The transcript clock does not know these fields of Message: {sorted(stray)}.",
            hint="List each in VISIBLE_FIELDS (moves the clock) or SILENT_FIELDS of models.py.",
            id="sessions_app.E001",
        )
    ]


def check_clock(
    *, databases: Iterable[str] | None = None, **_: object
) -> list[checks.CheckMessage]:
    """Warns where a database's triggers are not those of this version (`serve` refuses then).

    A database that cannot be asked is an error, in one sentence.
    """
    found: list[checks.CheckMessage] = []
    for name in databases or ():
        if name == "reader":
            continue
        try:
            found += _clock_warnings(name)
        except Error as exc:
            reason = (str(exc).strip() or type(exc).__name__).splitlines()[0].rstrip(".")
            found.append(
                checks.Error(
                    f"The database {name!r} cannot be used: {reason}.",
                    hint="Check DATABASE_URL, that the database runs, and that its disk has room.",
                    id="sessions_app.E003",
                )
            )
    return found


def _clock_warnings(name: str) -> list[checks.CheckMessage]:
    from sessions_app import clock

    connection = connections[name]
    if clock.SESSION not in connection.introspection.table_names():
        return []
    wrong = clock.differences(connection)
    if not wrong:
        return []
    return [
        checks.Warning(
            f"The transcript clock of database {name!r} is not in place: {wrong}.",
            hint="Run `python manage.py migrate`; it installs the triggers.",
            id="sessions_app.W002",
        )
    ]
