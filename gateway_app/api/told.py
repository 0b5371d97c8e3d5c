"""What rows and turns say in English, in the language of whoever asks."""

from typing import Any

from django.utils.translation import gettext

from gateway_app.shapes import Shape
from sessions_app.sentences import translated_part


def tell_history(page: Shape) -> Shape:
    """The page with its notices, and why its turns failed, in the active language."""
    said: dict[tuple[Any, str], str] = {}
    for row in page["messages"]:
        if row["kind"] != "notice" or not isinstance(row["parts"], list):
            continue
        for part in row["parts"]:
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and (told := translated_part(part)) is not None:
                said[row.get("turnId"), text] = part["text"] = told
    for turn in page["turns"]:
        if error := turn.get("error"):
            error["message"] = _reason(error["message"], turn["turnId"], said)
    return page


def _reason(message: str, turn_id: str, said: dict[tuple[Any, str], str]) -> str:
    """As the turn's notice says it, which a turn's own row may have cut."""
    for (of, text), told in said.items():
        if of == turn_id and message and text.startswith(message):
            return told
    return gettext(message) if message else ""
