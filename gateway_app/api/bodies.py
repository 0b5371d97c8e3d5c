"""Bodies of requests: the websocket's commands, without what the address already says."""

from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from django.http import HttpRequest
from pydantic import Field

from gateway_app import misfits, protocol
from gateway_app.api.callers import caller_of
from gateway_app.api.errors import ApiError
from gateway_app.services.busy import POLICIES
from sessions_app.sentences import say

C = TypeVar("C", bound=protocol.Command)

_JSON: Final = "application/json"


def read_command(request: HttpRequest, kind: type[C], *, optional: bool = False, **ids: UUID) -> C:
    """The body as a command about `ids`. Raises ApiError with a sentence that names what is wrong.

    `optional`: without a body, everything has its default. What makes something that stays counts.
    """
    if kind in protocol.STARTING:
        caller_of(request).check_start()
    given: dict[str, Any] = {}
    if request.body or not optional:
        given = _object(request)
    tag = {"type": kind.__struct_config__.tag, "id": None}
    try:
        return msgspec.convert(given | tag | _camel(ids), kind)
    except msgspec.ValidationError as exc:
        raise ApiError("invalid_frame", misfits.of_body(exc)) from exc


def _object(request: HttpRequest) -> dict[str, Any]:
    if request.content_type != _JSON:
        raise ApiError("unsupported", say("Send the body as %(type)s.", type=_JSON), 415)
    try:
        given = msgspec.json.decode(request.body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        raise ApiError(
            "invalid_frame", say("The body is not JSON: %(problem)s", problem=str(exc)), 400
        ) from exc
    if not isinstance(given, dict):
        raise ApiError("invalid_frame", say("The body is not a JSON object."))
    return given


def _camel(ids: dict[str, UUID]) -> dict[str, UUID]:
    return {"".join([head, *map(str.title, rest)]): value
            for name, value in ids.items() for head, *rest in [name.split("_")]}  # fmt: skip


def body_of(kind: type[protocol.Command], *ids: str, optional: bool = False) -> dict[str, Any]:
    """The OpenAPI of a body that `read_command` takes, for `openapi_extra`."""
    (_,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    schema = components.pop(kind.__name__)
    apart = {"type", "id", *_camel({name: UUID(int=0) for name in ids})}
    properties = {name: one for name, one in schema["properties"].items() if name not in apart}
    if "whenBusy" in properties:
        properties["whenBusy"]["enum"] = list(POLICIES)
    required = [name for name in schema["required"] if name not in apart]
    shape = {"type": "object", "title": kind.__name__, "properties": properties}
    if required:
        shape["required"] = required
    content = {_JSON: {"schema": _resolved(shape, components)}}
    return {"requestBody": {"required": not optional, "content": content}}


def _resolved(schema: Any, components: dict[str, Any]) -> Any:
    """The schema without references."""
    if isinstance(schema, list):
        return [_resolved(one, components) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _resolved(components[schema["$ref"]], components)
    return {name: _resolved(one, components) for name, one in schema.items()}


def limits(kind: Any) -> Any:
    """The limits of a value of the protocol, as OpenAPI has them for a parameter."""
    (meta,) = kind.__metadata__
    return Field(ge=meta.ge, le=meta.le, max_length=meta.max_length, min_length=meta.min_length)
