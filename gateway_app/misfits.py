"""What does not fit where a value is asked for, as sentences: parsers say it in English alone."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sessions_app.sentences import Sentence, quote, say

_KINDS: Final = {
    "str": say("text"),
    "int": say("a whole number"),
    "float": say("a number"),
    "bool": say("true or false"),
    "array": say("a list"),
    "object": say("an object"),
    "null": say("nothing"),
}
_Word = Callable[[str, re.Match[str]], Sentence]

_WORDS: Final[tuple[tuple[re.Pattern[str], _Word], ...]] = (
    (
        re.compile(r"Object missing required field `(.+)`"),
        lambda where, found: say(
            "%(field)s is missing.", field=f"{where}.{found[1]}" if where else found[1]
        ),
    ),
    (
        re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`"),
        lambda where, found: say(
            "%(field)s must be %(wanted)s, not %(given)s.",
            field=where,
            wanted=_KINDS.get(found[1], found[1]),
            given=_KINDS.get(found[2], found[2]),
        ),
    ),
    (
        re.compile(r"Expected `.+` of length >= (\d+)"),
        lambda where, found: say(
            "%(field)s must have a length of at least %(limit)s.", field=where, limit=int(found[1])
        ),
    ),
    (
        re.compile(r"Expected `.+` of length <= (\d+)"),
        lambda where, found: say(
            "%(field)s must have a length of at most %(limit)s.", field=where, limit=int(found[1])
        ),
    ),
    (re.compile(r"Expected `.+` >= (\d+)"), lambda where, found: _at_least(where, int(found[1]))),
    (re.compile(r"Expected `.+` <= (\d+)"), lambda where, found: _at_most(where, int(found[1]))),
    (
        re.compile(r"Expected `str` matching regex .*"),
        lambda where, _: say("%(field)s holds a character that is not allowed.", field=where),
    ),
    (re.compile(r"Invalid UUID"), lambda where, _: say("%(field)s is no UUID.", field=where)),
)
"""What msgspec says, and our words for it."""


def of_body(exc: msgspec.ValidationError) -> Sentence:
    """Why a command cannot be taken; as msgspec says it where there are no words for it."""
    problem, _, place = str(exc).partition(" - at ")
    where = place.strip("`").removeprefix("$").removeprefix(".")
    for pattern, word in _WORDS:
        found = pattern.fullmatch(problem)
        if found and (where or "missing" in problem) and "`" not in where:
            return word(where, found)
    return quote(str(exc))


def of_query(error: Mapping[str, Any]) -> Sentence:
    """Why a parameter of an address cannot be taken; `error` is one of pydantic's."""
    where = ".".join(str(one) for one in error["loc"][1:])
    limits = error.get("ctx", {})
    match error["type"]:
        case "int_parsing" | "int_type":
            return _must_be(where, "int")
        case "bool_parsing" | "bool_type":
            return _must_be(where, "bool")
        case "missing":
            return say("%(field)s is missing.", field=where)
        case "greater_than_equal":
            return _at_least(where, limits["ge"])
        case "less_than_equal":
            return _at_most(where, limits["le"])
        case "literal_error":
            return say(
                "%(field)s must be one of these: %(values)s.",
                field=where,
                values=str(limits["expected"]).replace(" or ", ", "),
            )
    return quote(f"{where}: {error['msg']}")


def _must_be(where: str, kind: str) -> Sentence:
    return say("%(field)s must be %(wanted)s.", field=where, wanted=_KINDS[kind])


def _at_least(where: str, limit: int) -> Sentence:
    return say("%(field)s must be at least %(limit)s.", field=where, limit=limit)


def _at_most(where: str, limit: int) -> Sentence:
    return say("%(field)s must be at most %(limit)s.", field=where, limit=limit)
