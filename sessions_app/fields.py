"""JSON that keeps its exact text, the same on SQLite and PostgreSQL.

PostgreSQL's jsonb reorders keys, changes 1e22 and -0.0, and refuses NUL and lone surrogates; what a
model was sent must be replayed byte for byte. So JSON is kept as text, checked by the database.
"""

import json
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Func
from django.db.models.sql.compiler import SQLCompiler


def dump_json(value: object) -> str:
    """`value` as compact JSON text that both databases can store.

    Text stays readable; NUL is always escaped, and lone surrogates make the whole text ASCII.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"))
    return text


class JSONTextField(models.TextField[Any, Any]):
    """A JSON value in a text column; `None` is SQL NULL."""

    def from_db_value(self, value: str | None, *_: object) -> object:
        return None if value is None else json.loads(value)

    def to_python(self, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return dump_json(value)

    def value_to_string(self, obj: models.Model) -> str:
        value = self.value_from_object(obj)
        return "null" if value is None else dump_json(value)


class IsJSON(Func):
    """True where a text column holds valid JSON."""

    output_field = models.BooleanField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Any:
        return super().as_sql(compiler, connection, template="json_valid(%(expressions)s)")

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any
    ) -> Any:
        template = "((%(expressions)s)::json IS NOT NULL)"
        return super().as_sql(compiler, connection, template=template)


class RandomUUID(Func):
    """A random UUID made by the database, so that a bare INSERT needs no id."""

    output_field = models.UUIDField()
    arity = 0

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Any:
        return super().as_sql(compiler, connection, template="lower(hex(randomblob(16)))")

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any
    ) -> Any:
        return super().as_sql(compiler, connection, template="gen_random_uuid()")
