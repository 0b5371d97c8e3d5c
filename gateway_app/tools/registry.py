"""The tools of this installation, by name, and how requests describe them."""

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, overload

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from gateway_app.providers.rows import dump
from gateway_app.tools.base import Tool
from gateway_app.tools.python_function import function_tool

F = TypeVar("F", bound=Callable[..., Any])

logger: Final = logging.getLogger(__name__)

_tools: Final[dict[str, Tool]] = {}


def discover() -> None:
    """Every installed app's `agent_tools.py` has been imported, as `admin.py` is."""
    autodiscover_modules("agent_tools")


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(*, name: str | None = None, timeout_s: float | None = None) -> Callable[[F], F]: ...


def tool(
    function: F | None = None, /, *, name: str | None = None, timeout_s: float | None = None
) -> F | Callable[[F], F]:
    """Registers a function as a tool, `@tool` or `@tool(timeout_s=...)`; it stays what it is.

    Raises ImproperlyConfigured for one that cannot be a tool, or whose name is taken.
    """

    def registered(function: F) -> F:
        register(function_tool(function, name=name, timeout_s=timeout_s))
        return function

    return registered if function is None else registered(function)


def register(new: Tool) -> None:
    """Agents may have the tool from now on. Raises ImproperlyConfigured if its name is taken."""
    known = _tools.setdefault(new.name, new)
    if known is not new:
        raise ImproperlyConfigured(
            f"Two tools are called {new.name!r}: {known.origin} and {new.origin}."
        )


def find_tool(name: str) -> Tool | None:
    return _tools.get(name)


def all_tools() -> list[Tool]:
    """Every tool, by name."""
    return [_tools[name] for name in sorted(_tools)]


def dump_schemas(names: Iterable[str]) -> str:
    """The tools as a request has them, a JSON array: the same text for the same tools.

    A name that nothing is registered by is left out.
    """
    wanted = sorted(set(names))
    if missing := [name for name in wanted if name not in _tools]:
        logger.warning("An agent has tools that are not installed", extra={"tools": missing})
    return f"[{','.join(_described(_tools[name]) for name in wanted if name in _tools)}]"


def read_names(schemas: str) -> list[str]:
    """The names in such an array."""
    return [schema["function"]["name"] for schema in json.loads(schemas)]


def _described(one: Tool) -> str:
    described = {
        "name": one.name,
        "description": one.description,
        "parameters": dict(one.parameters),
    }
    return dump({"type": "function", "function": described})
