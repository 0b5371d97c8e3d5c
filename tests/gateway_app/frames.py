"""Frames that make no sense, for every command that there is: drawn from the protocol's structs."""

import json
from typing import Any, Final, get_args

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gateway_app import protocol

NASTY: Final[list[Any]] = [
    "", " ", "\n", "\x00", "a\x00b", "\ud800", "a\udfffb", "x" * 129, "x" * 70_000, "👍" * 500,
    "\u202e", "%s", "'; DROP TABLE x; --", "null", "reject", "steer", "interrupt", "queue", "never",
    0, -1, 1, 10**18, 10**30, -(10**400), 1.5, 1e308, float("nan"), float("inf"), True, False, None,
    [], {}, [[]], [None], ["a"], {"a": 1}, [{"type": "text"}], [{"type": "text", "text": ""}],
    [{"type": "text", "text": "part\x00\ud83d"}], [{"type": "text", "text": "x"}] * 65,
    [{"type": "file", "url": "file:///etc/passwd"}], {"": {"": []}},
    "00000000-0000-0000-0000-000000000000", "01920000-0000-7000-8000-000000000000",
    "0192000000007000800000000000000", "eyJ9", "W10=", "WzEsIDJd",
]  # fmt: skip
"""Values that no field expects, and some that only a few do."""

STRUCTS: Final = {
    str(struct.__struct_config__.tag): struct for struct in get_args(protocol.AnyCommand)
}


def _names(struct: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(struct) if field.name != "id"]


@st.composite
def _command(draw: Any, known: list[str]) -> dict[str, Any]:
    """One command with some fields that make sense, some that do not, and some too many."""
    kind = draw(st.sampled_from(sorted(STRUCTS)))
    frame: dict[str, Any] = {"type": kind}
    for name in _names(STRUCTS[kind]):
        values = st.sampled_from(NASTY)
        if name.endswith("Id"):
            values = st.one_of(st.sampled_from(known), values)
        elif name in {"content", "title", "query", "client"}:
            values = st.one_of(st.text(max_size=20), values)
        if draw(st.booleans()) or draw(st.booleans()):
            frame[name] = draw(values)
    if draw(st.integers(0, 9)) == 0:
        frame[draw(st.text(max_size=5))] = draw(st.sampled_from(NASTY))
    return frame


def _as_text(frame: dict[str, Any]) -> str:
    """JSON as a careless client writes it: NaN, huge numbers and lone surrogates included."""
    return json.dumps(frame, ensure_ascii=True)


def frames(known: list[str]) -> SearchStrategy[list[dict[str, Any]]]:
    """A few commands in a row."""
    return st.lists(_command(known), min_size=1, max_size=12)


def texts() -> SearchStrategy[str | bytes]:
    """What may not even be a command: cut, doubled or altered JSON, bare text, bytes."""
    whole = _command(["x"]).map(_as_text)
    cut = st.tuples(whole, st.integers(0, 200)).map(lambda pair: pair[0][: pair[1]])
    doubled = whole.map(lambda text: text[:-1] + ', "type": "ping", "id": "twice"}')
    return st.one_of(whole, cut, doubled, st.text(max_size=200), st.binary(max_size=200))


def dump(frame: dict[str, Any]) -> str:
    return _as_text(frame)
