"""Stored text as it can be shown, whatever a raw writer put there."""

import json
import re
from typing import Any, Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` as any response can carry it: a lone surrogate becomes the replacement character."""
    return _SURROGATE.sub("\ufffd", text)


def load_parts(text: str) -> Any:
    """The stored JSON, or its text where Python cannot read what the database took for JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
