"""A function's signature as a schema, and what a model's arguments become."""

import json
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from pydantic import BaseModel, Field

from gateway_app.tools import ToolContext, ToolError, registry
from gateway_app.tools.python_function import function_tool
from sessions_app.models import new_id

CONTEXT = ToolContext(User(username="ann"), new_id(), new_id(), "a1")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    """Where it is."""

    title: str
    floor: int = 0


def paint(
    context: ToolContext,
    place: Place,
    colour: Colour,
    coats: Annotated[int, Field(ge=1, description="How many.")] = 2,
    json: Literal["a", "b"] = "a",
    copy: list[str] = [],  # noqa: B006
    on: date | None = None,
) -> dict[str, Any]:
    """Paint a place.

    It dries by itself.
    """
    return {"who": context.user.username, "title": place.title, "colour": colour, "coats": coats}


def run(function: Any, arguments: str) -> str:
    return str(function_tool(function).prepare(arguments, CONTEXT)())


def test_it_reads_the_schema_from_the_signature():
    tool = function_tool(paint)
    assert (tool.name, tool.blocking) == ("paint", True)
    assert tool.description == "Paint a place.\n\nIt dries by itself."
    schema = tool.parameters
    assert list(schema["properties"]) == ["place", "colour", "coats", "json", "copy", "on"]
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["required"] == ["place", "colour"]
    assert schema["properties"]["coats"] == {
        "default": 2, "description": "How many.", "minimum": 1, "type": "integer",
    }  # fmt: skip
    assert schema["$defs"]["Place"]["properties"]["title"] == {"type": "string"}
    assert schema["$defs"]["Colour"] == {"enum": ["red", "blue"], "type": "string"}


def test_it_makes_typed_arguments_of_what_the_model_wrote():
    asked = '{"place": {"title": "hall"}, "colour": "red", "coats": "3", "on": "2030-01-02"}'
    assert json.loads(run(paint, asked)) == {
        "who": "ann", "title": "hall", "colour": "red", "coats": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{", "Invalid JSON"),
        ("[]", "Input should be an object"),
        ('"\\ud800"', "Invalid JSON"),
        ("[" * 10_000, "recursion limit"),
        ('{"colour": "red"}', "place: Field required"),
        ('{"place": {}, "colour": "green"}', "place.title: Field required; colour: Input should"),
        ('{"place": {"title": "x"}, "colour": "red", "context": 1}', "context: Extra inputs"),
        ('{"place": {"title": "x"}, "colour": "red", "argument_2": 1}', "argument_2: Extra inputs"),
        ('{"place": {"title": "x"}, "colour": "red", "coats": 0}', "coats: Input should be great"),
    ],
)
def test_it_tells_the_model_what_does_not_fit(arguments: str, told: str):
    with pytest.raises(ToolError, match="The arguments do not fit: ") as raised:
        run(paint, arguments)
    assert told in str(raised.value)


def test_it_takes_a_function_without_parameters():
    def rest() -> None:
        """Rest."""

    assert function_tool(rest).parameters == {
        "type": "object", "properties": {}, "additionalProperties": False,
    }  # fmt: skip
    assert run(rest, "{}") == "(no output)"


def test_it_sends_text_that_servers_take():
    def shout() -> str:
        """Shout."""
        return "a\x00b\ud800c"

    assert run(shout, "{}") == "a\ufffdb\ufffdc"


def untyped(where):
    """Look."""


def starred(*where: str) -> str:
    """Look."""


def positional(where: str, /) -> str:
    """Look."""


def undocumented(where: str) -> str: ...


def lazy() -> Any:
    """Look."""
    yield


def unreadable(where: "Elsewhere") -> str:  # type: ignore[name-defined]  # noqa: F821
    """Look."""


def misplaced(where: int = Field(3)) -> str:
    """Look."""


class Opaque: ...


def opaque(where: Opaque) -> str:
    """Look."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (untyped, "where has no annotation"),
        (starred, "cannot be given by its name"),
        (positional, "cannot be given by its name"),
        (undocumented, "needs a docstring"),
        (lazy, "yields nothing"),
        (unreadable, "an annotation cannot be read"),
        (misplaced, "in Annotated"),
        (opaque, "Opaque"),
    ],
)
def test_it_refuses_what_cannot_be_a_tool(function: Any, why: str):
    with pytest.raises(ImproperlyConfigured, match=why) as raised:
        function_tool(function)
    assert function.__qualname__ in str(raised.value)


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 65, "a.b"])
def test_it_refuses_names_that_providers_refuse(name: str):
    with pytest.raises(ImproperlyConfigured, match="name"):
        function_tool(paint, name=name)


def test_it_refuses_a_name_twice():
    with pytest.raises(ImproperlyConfigured, match=r"Two tools are called 'look'.*paint"):
        registry.tool(name="look")(paint)
    assert registry.find_tool("look").origin == "tests.toolbox.agent_tools.look"


def test_it_describes_tools_the_same_way_whatever_their_order(caplog: pytest.LogCaptureFixture):
    text = registry.dump_schemas(["look", "current_time", "look"])
    assert text == registry.dump_schemas(["current_time", "look"])
    assert registry.read_names(text) == ["current_time", "look"]
    assert registry.dump_schemas([]) == "[]"
    assert registry.dump_schemas(["gone"]) == "[]"
    assert "not installed" in caplog.text
