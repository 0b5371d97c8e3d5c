"""A second client of the database: bare SQL on a connection of its own, in autocommit."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

from sessions_app.models import Message, Session

SESSION = Session._meta.db_table
MESSAGE = Message._meta.db_table


class RawClient:
    """What `psql` or `sqlite3` would be: it knows neither Django nor the services."""

    def __init__(self) -> None:
        self.sqlite = connection.vendor == "sqlite"
        self.refusals = sqlite3.IntegrityError if self.sqlite else psycopg.IntegrityError
        if self.sqlite:
            name = connection.settings_dict["NAME"]
            self._connection: Any = sqlite3.connect(
                name, timeout=20, isolation_level=None, check_same_thread=False
            )
            return
        params = connection.get_connection_params()
        wanted = ("host", "port", "user", "password", "dbname")
        named = {name: params[name] for name in wanted if params.get(name)}
        self._connection = psycopg.connect(**named, autocommit=True)

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()

    def value(self, uuid: UUID) -> Any:
        """A UUID as a parameter."""
        return uuid.hex if self.sqlite else uuid

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of one statement: one snapshot."""
        return list(self._execute(sql, params).fetchall())

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """One statement, committed; how many rows it touched."""
        return int(self._execute(sql, params).rowcount)

    def _execute(self, sql: str, params: Sequence[Any]) -> Any:
        if self.sqlite:
            sql = sql.replace("%s", "?")
        values = [self.value(one) if isinstance(one, UUID) else one for one in params]
        return self._connection.execute(sql, values)
