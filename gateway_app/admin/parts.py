"""A message's stored parts as plain text to show, whatever a raw writer put there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from gateway_app.selectors.stored import printable
from sessions_app.sentences import translated_part

SHOWN_CHARACTERS: Final = 50_000
LINE_CHARACTERS: Final = 100
_FACTS: Final = {"tools": _("Tools"), "model": _("Model"), "platform": _("Platform")}

Shape = Literal["text", "reasoning", "call", "result", "failed", "unknown", "facts", "raw"]


@dataclass(frozen=True, slots=True)
class PartView:
    """One part: `text` is shown as it is, escaped; `cut` characters of it are left out."""

    shape: Shape
    text: str
    title: str = ""
    cut: int = 0
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        """The beginning of the text on one line, for a fold."""
        line = " ".join(self.text[: 2 * LINE_CHARACTERS].split())
        return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…"


def _shown(shape: Shape, text: str, title: str = "") -> PartView:
    text = printable(text)
    left_out = max(0, len(text) - SHOWN_CHARACTERS)
    return PartView(shape, text[:SHOWN_CHARACTERS], printable(title), left_out)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return gettext("Nested too deeply to be shown.")


def _tool_names(tools: Any) -> str:
    """The names in a list of tools, which are names or schemas."""
    if not isinstance(tools, list):
        return _as_text(tools)
    names = [tool.get("name", tool) if isinstance(tool, Mapping) else tool for tool in tools]
    return ", ".join(_as_text(name) for name in names) or gettext("none")


def _fact_name(name: str) -> str:
    return gettext(_FACTS[name]) if name in _FACTS else name


def _facts(part: Mapping[str, Any]) -> PartView:
    facts = [
        (_fact_name(name), _tool_names(value) if name == "tools" else _as_text(value))
        for name, value in part.items()
        if name != "type"
    ]
    return PartView(
        "facts", "", facts=tuple((printable(name), printable(text)) for name, text in facts)
    )


def _view(part: Any, tool_names: Mapping[str, str]) -> PartView:
    if not isinstance(part, Mapping):
        return _shown("raw", _as_text(part))
    match part.get("type"):
        case "text" if "text" in part:
            return _shown("text", translated_part(part) or _as_text(part["text"]))
        case "reasoning" if "text" in part:
            return _shown("reasoning", _as_text(part["text"]))
        case "tool_call" if "name" in part:
            return _shown("call", _as_text(part.get("arguments", "")), _as_text(part["name"]))
        case "tool_result" if "content" in part:
            name = tool_names.get(str(part.get("callId")), "")
            if part.get("error") == "unknown":
                return _shown("unknown", _as_text(part["content"]), name)
            shape: Shape = "failed" if part.get("error") else "result"
            error = part["error"] if isinstance(part.get("error"), str) else ""
            text = "\n".join(filter(None, (error, _as_text(part["content"]))))
            return _shown(shape, text, name)
        case "session_meta":
            return _facts(part)
    return _shown("raw", _as_text(part))


def view_parts(parts: Any, tool_names: Mapping[str, str]) -> list[PartView]:
    """Every part, in order; something that is no list is one part. `tool_names` is by call id."""
    listed = parts if isinstance(parts, list) else [parts]
    return [_view(part, tool_names) for part in listed]


def called_tools(parts: Any) -> dict[str, str]:
    """Call id -> tool name, of the calls in these parts."""
    if not isinstance(parts, list):
        return {}
    calls = [part for part in parts if isinstance(part, Mapping)]
    return {
        str(call.get("id")): _as_text(call.get("name"))
        for call in calls
        if call.get("type") == "tool_call"
    }


def plain_text(parts: Any) -> str:
    """The text parts alone, for a line in a list."""
    views = view_parts(parts, {})
    return "\n".join(view.text for view in views if view.shape == "text")
