"""What the admin's list says of each session beside its own row: two statements a page."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, OuterRef, Q, Subquery, Sum, TextField, Value
from django.db.models.functions import Cast, Greatest, StrIndex, Substr

from gateway_app.models import Turn
from gateway_app.selectors.verdicts import Shares, count_shares
from sessions_app.models import Message, Session

SNIPPET_KINDS: Final = ("user", "assistant", "operator")
SNIPPET_CHARACTERS: Final = 120
_READ_CHARACTERS: Final = 1500
"""Of the last message's stored JSON, from its first text on: enough for a line."""
_TEXT_BEGINS: Final = '{"type":"text"'
"""As `dump_json` writes it. Reasoning may stand before it, at any length."""
_TYPE, _STRING = r'"type"\s*:\s*"text"', r'"text"\s*:\s*"((?:[^"\\]|\\.)*)'
_TEXT: Final = re.compile(rf'{_TYPE}\s*,\s*{_STRING}|{_STRING}"\s*,\s*{_TYPE}')
"""The text of a part that people read; within a string its quotes would be escaped."""


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session's turns summed up, the end of its last one, and the words that were said last."""

    turns: int = 0
    shares: Shares = field(default_factory=Shares)
    input_tokens: int | None = None
    """Of turns whose cached tokens are known."""
    cached_tokens: int | None = None
    cost_usd: Decimal | None = None
    waiting: int = 0
    approvals: int = 0
    last_state: str = ""
    last_error: str = ""
    snippet: str = ""


def last_ended(field: str) -> Subquery:
    """A field of the session's newest turn that has ended."""
    ended = Turn.objects.filter(session_id=OuterRef("pk"), finished_at__isnull=False)
    return Subquery(ended.order_by("-created_at").values(field)[:1])


def snippet_of(stored: str | None) -> str:
    """What people read in a piece of a message's stored parts, on one line; may be empty.

    The JSON may be cut anywhere, or be a raw writer's. Reasoning is left out.
    """
    found = []
    for match in _TEXT.finditer(stored or ""):
        text = match[match.lastindex or 0]
        if match.end() == len(stored or ""):
            text = text.rstrip("\\")
        try:
            found.append(str(json.loads(f'"{text}"', strict=False)))
        except ValueError:  # cut within an escape
            found.append(text.rpartition("\\")[0])
    line = " ".join("".join(c if c.isprintable() else " " for c in " ".join(found)).split())
    return line if len(line) <= SNIPPET_CHARACTERS else f"{line[:SNIPPET_CHARACTERS].rstrip()}…"


def read_lines(session_ids: Sequence[UUID]) -> dict[UUID, SessionLine]:
    """A line for each session."""
    sums = _read_sums(session_ids)
    said = Message.objects.filter(
        session_id=OuterRef("pk"), state="active", kind__in=SNIPPET_KINDS
    ).order_by("-position")
    parts = Cast("parts", TextField())
    begins = Greatest(StrIndex(parts, Value(_TEXT_BEGINS)), Value(1))
    text = Substr(parts, begins, _READ_CHARACTERS)
    found = Session.objects.filter(pk__in=session_ids).annotate(
        last_state=last_ended("state"),
        last_error=last_ended("error_code"),
        said=Subquery(said.annotate(beginning=text).values("beginning")[:1]),
    )
    return {
        pk: SessionLine(
            **sums.get(pk, {}),
            last_state=state or "",
            last_error=error or "",
            snippet=snippet_of(beginning),
        )
        for pk, state, error, beginning in found.values_list(
            "pk", "last_state", "last_error", "said"
        )
    }


def _read_sums(session_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    known = Q(cached_tokens__isnull=False)
    rows: Iterable[Any] = (
        Turn.objects.filter(session_id__in=session_ids)
        .values("session_id")
        .annotate(
            turns=Count("pk", filter=~Q(state__in=["queued", "held", "absorbed"])),
            waiting=Count("pk", filter=Q(state__in=["queued", "held"])),
            approvals=Count("pk", filter=Q(state="waiting_approval")),
            input_sum=Sum("input_tokens", filter=known),
            cached_sum=Sum("cached_tokens"),
            cost_sum=Sum("cost_usd"),
            **count_shares(),
        )
    )
    return {
        row["session_id"]: {
            "turns": row["turns"],
            "waiting": row["waiting"],
            "approvals": row["approvals"],
            "input_tokens": row["input_sum"],
            "cached_tokens": row["cached_sum"],
            "cost_usd": row["cost_sum"],
            "shares": Shares(row["reuse"], row["catch_up"], row["reload"], row["rebuild"]),
        }
        for row in rows
    }
