"""A session as its tables hold it, for staff: one JSON document in a file, in constant memory."""

from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast

from gateway_app.models import Turn
from gateway_app.selectors.exports import Export, one_moment
from sessions_app.fields import JSONTextField
from sessions_app.models import Message, Session

_AT_ONCE: Final = 100
_STORED: Final = "stored_"
_encode = msgspec.json.Encoder(decimal_format="number").encode


def _json_fields(model: type[Model]) -> list[str]:
    return [one.attname for one in model._meta.concrete_fields if isinstance(one, JSONTextField)]


def _with_text(rows: QuerySet[Any]) -> QuerySet[Any]:
    """The rows with their JSON as the text that is stored: a raw writer's may be beyond Python."""
    names = _json_fields(rows.model)
    texts = {f"{_STORED}{name}": Cast(name, TextField()) for name in names}
    annotated: QuerySet[Any] = rows.annotate(**texts).defer(*names)
    return annotated


def _columns(row: Model, json_fields: Sequence[str]) -> dict[str, Any]:
    """Every column by its name."""
    found: dict[str, Any] = {}
    for one in row._meta.concrete_fields:
        if one.attname in json_fields:
            text = getattr(row, f"{_STORED}{one.attname}")
            found[one.attname] = (
                None if text is None else msgspec.Raw(text.encode(errors="replace"))
            )
        else:
            found[one.attname] = getattr(row, one.attname)
    return found


def _listed(name: str, rows: QuerySet[Any]) -> Iterator[bytes]:
    yield f',\n"{name}": ['.encode()
    json_fields, comma = _json_fields(rows.model), b"\n"
    for row in _with_text(rows).iterator(chunk_size=_AT_ONCE):
        yield comma + _encode(_columns(row, json_fields))
        comma = b",\n"
    yield b"]"


def _document(session_id: UUID, alias: str) -> Iterator[bytes]:
    session = Session.objects.using(alias).get(pk=session_id)
    yield b'{"session": ' + _encode(_columns(session, ()))
    turns = Turn.objects.using(alias).filter(session_id=session_id)
    yield from _listed("turns", turns.order_by("created_at", "pk"))
    messages = Message.objects.using(alias).filter(session_id=session_id)
    yield from _listed("messages", messages.order_by("position", "pk"))
    yield b"}\n"


def export_raw(session_id: UUID) -> Export:
    """The session's row, its turns and its messages of every kind, at one moment."""
    file = TemporaryFile()  # noqa: SIM115  the response closes it
    try:
        with one_moment() as alias:
            for piece in _document(session_id, alias):
                file.write(piece)
        size_bytes = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return Export(file, f"{session_id}.json", "application/json", size_bytes)
