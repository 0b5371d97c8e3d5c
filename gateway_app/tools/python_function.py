"""A Python function as a tool: its signature is the schema, its docstring the description."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

import pydantic
from django.core.exceptions import ImproperlyConfigured
from pydantic.fields import FieldInfo
from pydantic_core import to_json

from gateway_app.providers.rows import clean
from gateway_app.tools.base import ToolContext, ToolError

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes for a name."""
_LITERALS: Final = frozenset({"default", "enum", "const", "examples"})
"""Keys of a schema whose values are no schemas."""
NOTHING: Final = "(no output)"

_Arguments = type[pydantic.BaseModel]


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A `Tool`. Made by `function_tool`."""

    name: str
    description: str
    origin: str
    parameters: Mapping[str, Any]
    timeout_s: float | None
    blocking: bool
    _function: Callable[..., Any]
    _arguments: _Arguments
    _context: str | None
    """The parameter that gets the context."""

    def prepare(self, arguments: str, context: ToolContext) -> Callable[[], Any]:
        try:
            read = self._arguments.model_validate_json(arguments)
        except pydantic.ValidationError as exc:
            raise ToolError(f"The arguments do not fit: {_problems(exc)}.") from exc
        fields = self._arguments.model_fields
        given = {str(fields[name].alias): getattr(read, name) for name in read.model_fields_set}
        if self._context is not None:
            given[self._context] = context
        return self._bound(given)

    def _bound(self, given: dict[str, Any]) -> Callable[[], Any]:
        if self.blocking:
            return lambda: as_text(self._function(**given))

        async def call() -> str:
            return as_text(await self._function(**given))

        return call


def function_tool(
    function: Callable[..., Any], *, name: str | None = None, timeout_s: float | None = None
) -> FunctionTool:
    """The function as a tool. Raises ImproperlyConfigured for one that cannot be a tool."""
    origin = f"{function.__module__}.{function.__qualname__}"
    name = function.__name__ if name is None else name
    if not _NAME.fullmatch(name):
        raise ImproperlyConfigured(
            f"{origin}: a tool's name has at most 64 letters, digits, _ and -, not {name!r}."
        )
    description = inspect.getdoc(function)
    if not description:
        raise ImproperlyConfigured(f"{origin}: a tool needs a docstring, which models read.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ImproperlyConfigured(f"{origin}: a tool returns its result and yields nothing.")
    if timeout_s is not None and timeout_s <= 0:
        raise ImproperlyConfigured(f"{origin}: timeout_s must be more than 0.")
    arguments, context = _read_signature(function, origin)
    return FunctionTool(
        name=name,
        description=description,
        origin=origin,
        parameters=_schema(arguments, origin),
        timeout_s=timeout_s,
        blocking=not inspect.iscoroutinefunction(function),
        _function=function,
        _arguments=arguments,
        _context=context,
    )


def _read_signature(function: Callable[..., Any], origin: str) -> tuple[_Arguments, str | None]:
    """The model of the arguments, and the parameter that takes the context."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as exc:
        raise ImproperlyConfigured(f"{origin}: an annotation cannot be read: {exc}.") from exc
    fields: dict[str, Any] = {}
    context = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise ImproperlyConfigured(f"{origin}: {parameter} cannot be given by its name.")
        if parameter.name not in hints:
            raise ImproperlyConfigured(f"{origin}: parameter {parameter.name} has no annotation.")
        hint = hints[parameter.name]
        if hint is ToolContext:
            context = parameter.name
            continue
        if isinstance(parameter.default, FieldInfo):
            raise ImproperlyConfigured(f"{origin}: put the Field of {parameter.name} in Annotated.")
        default = ... if parameter.default is parameter.empty else parameter.default
        # a name of our own: pydantic refuses several that a function may use
        field = pydantic.Field(default, alias=parameter.name)
        fields[f"argument_{len(fields)}"] = (hint, field)
    config = pydantic.ConfigDict(extra="forbid")
    try:
        return pydantic.create_model("Arguments", __config__=config, **fields), context
    except pydantic.errors.PydanticUserError as exc:
        raise ImproperlyConfigured(f"{origin}: {exc.message}") from exc


def _schema(arguments: _Arguments, origin: str) -> dict[str, Any]:
    try:
        schema = arguments.model_json_schema()
    except pydantic.errors.PydanticUserError as exc:
        raise ImproperlyConfigured(f"{origin}: {exc.message}") from exc
    found: dict[str, Any] = _without_titles(schema)
    return {"type": "object", "properties": {}, **found}


def _without_titles(schema: Any) -> Any:
    """The schema without pydantic's titles, which say a name again."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _LITERALS else _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _problems(error: pydantic.ValidationError) -> str:
    return "; ".join(_worded(error))


def _worded(error: pydantic.ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(map(str, problem["loc"]))
        yield f"{where}: {problem['msg']}" if where else problem["msg"]


def as_text(result: Any) -> str:
    """What the model is told of a function's result: text as it is, anything else as JSON."""
    if result is None or result == "":
        return NOTHING
    return clean(result if isinstance(result, str) else to_json(result).decode())
