"""Sentences for people, which know what they were made of.

Whoever refuses something does not know who will read why, nor in which language. So a refusal
carries a Sentence: English for logs, programs and rows; its messages and their values for whoever
shows it, who says it in the reader's language.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Union

from django.utils.formats import number_format
from django.utils.translation import gettext

Value = Union[str, int, float, "Sentence"]
"""Numbers are written as the reader's language writes them, texts as they are."""

_PLACEHOLDER: Final = re.compile(r"%\((\w+)\)s")
_QUOTED: Final = "%(text)s"
_DEEPEST: Final = 4
"""Of sentences within sentences; nobody says more."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One or more sentences. `str` of it is English, `translated` the active language's.

    `parts`: each a message of the catalogue, and the values of its placeholders.
    """

    parts: tuple[tuple[str, Mapping[str, Value]], ...]

    def __str__(self) -> str:
        return self._said(str, _english)

    def __add__(self, other: "Sentence") -> "Sentence":
        """The one, then the other."""
        return Sentence(self.parts + other.parts)

    def translated(self) -> str:
        """In the active language; in English what the catalogue lacks."""
        return self._said(gettext, _local)

    def shape(self) -> list[dict[str, Any]]:
        """The parts as JSON, for rows and the wire; a value that is a sentence is such a list."""
        return [
            {"text": text, "values": {name: _shape(value) for name, value in values.items()}}
            for text, values in self.parts
        ]

    def _said(self, find: Callable[[str], str], write: Callable[[Value], str]) -> str:
        return " ".join(_filled(find(text), values, write) for text, values in self.parts)


def say(text: str, /, **values: Value) -> Sentence:
    """The message, a literal that `scripts/catalogue.py` finds, with `%(name)s` for each value."""
    return Sentence(((text, values),))


def quote(text: str) -> Sentence:
    """What others say, such as a parser: nothing translates it."""
    return Sentence(((_QUOTED, {"text": text}),))


NOTHING: Final = Sentence(())


def notice_part(sentence: Sentence) -> dict[str, Any]:
    """The part of a notice's row: stored once, in English, and shown to everybody in theirs."""
    return {"type": "text", "text": str(sentence), "sentences": sentence.shape()}


def translated_part(part: Mapping[str, Any]) -> str | None:
    """A notice's part in the active language; None: it is none, or the catalogue lacks it."""
    found = read_shape(part.get("sentences"))
    return found.translated() if found is not None and _known(found) else None


def _known(sentence: Sentence, *, within: bool = False) -> bool:
    """Whether the catalogue has all of it: a foreign text may repeat its values without end."""
    return all(
        (gettext(text) != text or (within and text == _QUOTED))
        and all(_known(one, within=True) for one in values.values() if isinstance(one, Sentence))
        for text, values in sentence.parts
    )


def _filled(text: str, values: Mapping[str, Value], write: Callable[[Value], str]) -> str:
    # not the operator %: a stored text is somebody's input, and a width is a lot of memory
    return _PLACEHOLDER.sub(lambda found: write(values.get(found[1], found[0])), text)


def read_shape(shape: object, deep: int = 0) -> Sentence | None:
    """The sentence that has the shape; None where a raw writer left something else."""
    if not isinstance(shape, list) or not shape or deep == _DEEPEST:
        return None
    parts = []
    for one in shape:
        match one:
            case {"text": str(text), "values": dict(values)} if text:
                read = {name: _value(value, deep) for name, value in values.items()}
                parts.append((text, read))
            case _:
                return None
    return Sentence(tuple(parts))


def _value(shape: object, deep: int) -> Value:
    if isinstance(shape, str | int | float) and not isinstance(shape, bool):
        return shape
    return read_shape(shape, deep + 1) or ""


def _shape(value: Value) -> Any:
    return value.shape() if isinstance(value, Sentence) else value


def _english(value: Value) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _local(value: Value) -> str:
    if isinstance(value, Sentence):
        return value.translated()
    if isinstance(value, int):
        return number_format(value, force_grouping=True)
    return number_format(f"{value:g}") if isinstance(value, float) else value
