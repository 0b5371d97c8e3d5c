"""Why turns failed, in the reader's language. A turn's row holds the English sentence alone."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext

from gateway_app.models import Turn
from gateway_app.selectors.stored import load_parts, printable
from sessions_app.models import BLOCK, Message
from sessions_app.sentences import translated_part


def told_failures(turns: Iterable[Turn]) -> dict[UUID, str]:
    """For each turn with an error: what its notice says, else its stored sentence, looked up.

    One statement. The turns are of one session.
    """
    failed = {turn.pk: turn for turn in turns if turn.error_message}
    blocks = [turn.block for turn in failed.values() if turn.block is not None]
    told = {pk: printable(gettext(turn.error_message)) for pk, turn in failed.items()}
    notices = (
        Message.objects.filter(
            session_id__in={turn.session_id for turn in failed.values()},
            position__gte=min(blocks, default=0) * BLOCK,
            position__lt=(max(blocks, default=0) + 1) * BLOCK,
            turn_id__in=failed,
            kind=Message.Kind.NOTICE,
        )
        .annotate(parts_text=Cast("parts", TextField()))
        .values_list("turn_id", "parts_text")
    )
    for turn_id, text in notices:
        turn = failed.get(turn_id) if turn_id else None
        if turn and (found := _translated(load_parts(text), turn.error_message)):
            told[turn.pk] = printable(found)
    return told


def _translated(parts: object, message: str) -> str | None:
    """The translation of the part that says the message, which a turn's row may have cut."""
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, Mapping) and str(part.get("text")).startswith(message):
            return translated_part(part)
    return None
