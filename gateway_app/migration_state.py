"""How a database's migrations compare with those of this version."""

from collections.abc import Sequence
from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

Name = tuple[str, str]


@cache
def _wanted() -> dict[Name, Sequence[Name]]:
    """Every migration of a fresh database, with those that it replaces."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return {key: loader.disk_migrations[key].replaces for key in loader.graph.nodes}


@cache
def _known() -> frozenset[Name]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    replaced = [name for names in _wanted().values() for name in names]
    return frozenset([*loader.disk_migrations, *replaced])


def missing_migrations(connection: BaseDatabaseWrapper) -> list[str]:
    """Migrations of this version that the database has not seen, as `app.name`. One query."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    return [
        ".".join(key)
        for key, replaces in _wanted().items()
        if key not in applied and not (replaces and applied.issuperset(replaces))
    ]


def unknown_migrations(connection: BaseDatabaseWrapper) -> list[str]:
    """Applied migrations of our apps that this version does not have: the database is newer."""
    apps = {app for app, _ in _known()}
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted(".".join(key) for key in applied if key[0] in apps and key not in _known())
