"""Rows of a transcript as Markdown, for people to read."""

import json
import re
from typing import Any, Final

from gateway_app.shapes import timestamp
from sessions_app.models import Message, Session

_WHO: Final = {
    "user": "You",
    "assistant": "Assistant",
    "tool": "Tool",
    "operator": "Operator",
    "notice": "Notice",
    "summary": "Summary",
}
_STATES: Final = {
    "compacted": "summarised later",
    "superseded": "interrupted attempt",
    "branched": "another branch",
}


def markdown_head(session: Session) -> str:
    """The document's title and where it comes from."""
    title = " ".join(session.title.split()) or "Conversation"
    return f"# {_plain(title)}\n\nBegan {timestamp(session.created_at)}, agent `{session.agent}`.\n"


def markdown_row(row: Message, parts_text: str) -> str:
    """A heading that says who, when, and whether it still counts; then what was written."""
    who = row.author.get_username() if row.author else _WHO.get(row.kind, row.kind)
    marks = [_STATES[row.state]] if row.state in _STATES else []
    if row.kind == "assistant" and row.finish in {"stopped", "error", "interrupted"}:
        marks.append(row.finish)
    note = f" ({', '.join(marks)})" if marks else ""
    body = "\n\n".join(_part(part) for part in _parts(parts_text))
    return f"\n## {_plain(who)}{note}\n\n*{timestamp(row.created_at)}*\n\n{body}\n"


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
            return text
        case {"type": "reasoning", "text": str(text)}:
            return "\n".join(f"> {line}" for line in f"Reasoning:\n{text}".splitlines())
        case {"type": "tool_call", "name": str(name), "arguments": str(arguments)}:
            return f"Called `{_code(name)}`:\n\n{_fenced(arguments)}"
        case {"type": "tool_result", "content": str(content)}:
            return _fenced(content)
        case {"type": "attachment", "name": str(name)}:
            return f"Attachment: {_plain(name)}"
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
