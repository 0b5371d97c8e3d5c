"""Rows of a transcript as Markdown, for people to read: in the active language."""

import json
import re
from typing import Any, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from gateway_app.shapes import timestamp
from sessions_app.models import Message, Session
from sessions_app.sentences import translated_part

_WHO: Final = {
    "user": _("You"),
    "assistant": _("Assistant"),
    "tool": _("Tool"),
    "operator": _("Operator"),
    "notice": _("Notice"),
    "summary": _("Summary"),
}
_STATES: Final = {
    "compacted": _("summarised later"),
    "superseded": _("interrupted attempt"),
    "branched": _("another branch"),
}
_FINISHES: Final = {
    "stopped": _("stopped"),
    "error": _("failed"),
    "interrupted": _("interrupted"),
}


def markdown_head(session: Session) -> str:
    """The document's title and where it comes from."""
    title = " ".join(session.title.split()) or gettext("Conversation")
    began = gettext("Began %(at)s, agent %(agent)s.") % {
        "at": timestamp(session.created_at),
        "agent": f"`{session.agent}`",
    }
    return f"# {_plain(title)}\n\n{began}\n"


def markdown_row(row: Message, parts_text: str) -> str:
    """A heading that says who, when, and whether it still counts; then what was written."""
    who = row.author.get_username() if row.author else _word(_WHO, row.kind)
    marks = [gettext(_STATES[row.state])] if row.state in _STATES else []
    if row.kind == "assistant" and row.finish in _FINISHES:
        marks.append(gettext(_FINISHES[row.finish]))
    note = f" ({', '.join(marks)})" if marks else ""
    body = "\n\n".join(_part(part) for part in _parts(parts_text))
    return f"\n## {_plain(who)}{note}\n\n*{timestamp(row.created_at)}*\n\n{body}\n"


def _word(words: dict[str, str], value: str) -> str:
    return gettext(words[value]) if value in words else value


def _parts(text: str) -> list[Any]:
    """What can be read of the parts; the whole text where a raw writer left something else."""
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return parts if isinstance(parts, list) else [parts]


def _part(part: Any) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return translated_part(part) or text
        case {"type": "reasoning", "text": str(text)}:
            lines = [gettext("Reasoning:"), *text.splitlines()]
            return "\n".join(f"> {line}" for line in lines)
        case {"type": "tool_call", "name": str(name), "arguments": str(arguments)}:
            called = gettext("Called %(tool)s:") % {"tool": f"`{_code(name)}`"}
            return f"{called}\n\n{_fenced(arguments)}"
        case {"type": "tool_result", "content": str(content)}:
            return _fenced(content)
        case {"type": "attachment", "name": str(name)}:
            return gettext("Attachment: %(name)s") % {"name": _plain(name)}
        case str():
            return _fenced(part)
    return _fenced(json.dumps(part, ensure_ascii=False))


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _plain(text: str) -> str:
    """Text of one line that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
