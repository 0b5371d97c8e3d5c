"""docs/configuration.md and the README name every variable and option that there is."""

import re
from argparse import ArgumentParser
from typing import Final

import pytest

from gateway_app.management.commands import serve
from hermes_site.environment import Environment, read_environment
from tests.docs.reading import document, section

PAGE: Final = document("docs/configuration.md")
README: Final = document("README.md")


class Asked(dict[str, str]):
    """An environment without variables, which remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]  # one use only
        self.names.add(name)
        return default


@pytest.fixture(scope="module")
def variables() -> set[str]:
    """Every variable that Hermes reads."""
    asked = Asked()
    assert isinstance(read_environment(asked), Environment)
    return asked.names


def named_in_table(text: str) -> set[str]:
    rows = re.findall(r"^\| (`[A-Z].*?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}


def test_it_describes_every_variable(variables: set[str]) -> None:
    assert len(variables) > 10
    assert named_in_table(section(PAGE, "## Variables")) == variables


def test_the_readme_lists_every_variable(variables: set[str]) -> None:
    assert named_in_table(section(README, "## Variables")) == variables


def test_it_names_no_variable_that_is_not_read(variables: set[str]) -> None:
    named = set(re.findall(r"\b(?:HERMES|OPENAI|ANTHROPIC)_[A-Z_]+\b", PAGE + README))
    assert named <= variables | {"HERMES_TOKEN"}


def test_it_describes_every_option_of_serve() -> None:
    parser = ArgumentParser(add_help=False)
    serve.Command().add_arguments(parser)
    options = {text for action in parser._actions for text in action.option_strings}
    listed = re.findall(r"^\| `(--[a-z]+)`", section(PAGE, "## Options of `serve`"), re.MULTILINE)
    assert set(listed) == options
