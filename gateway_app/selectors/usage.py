"""What turns took: tokens, cached tokens and cost, by day, agent and model."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import Count, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from gateway_app.models import Turn
from gateway_app.shapes import Shape, cost

MAX_DAYS: Final = 366
_SUMS: Final = {
    "inputTokens": Sum("input_tokens", default=0),
    "cachedInputTokens": Sum("cached_tokens", default=0),
    "outputTokens": Sum("output_tokens", default=0),
    "costUsd": Sum("cost_usd", default=0),
}


def may_see_everyone(user: User) -> bool:
    """Whether the user may see what others used: staff who may view turns in the admin."""
    return user.is_staff and user.has_perm("gateway_app.view_turn")


def _row(row: Mapping[str, Any]) -> Shape:
    return {
        "day": row["day"].isoformat(),
        "agent": row["session__agent"],
        "model": row["model"],
        "turns": row["turns"],
        **{name: row[name] for name in _SUMS},
    }


def read_usage(*, author_id: int | None, days: int) -> Shape:
    """What turns of the last `days` days took, newest day first; None: everyone's.

    Imported turns do not count: whoever sent their messages has paid for them elsewhere.
    """
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    turns = Turn.objects.filter(
        created_at__gte=today - timedelta(days=days - 1), client_message_id__isnull=False
    )
    if author_id is not None:
        turns = turns.filter(author_id=author_id)
    rows = (
        turns.annotate(day=TruncDate("created_at"))
        .values("day", "session__agent", "model")
        .annotate(turns=Count("pk"), **_SUMS)
        .order_by("-day", "session__agent", "model")
    )
    found = [_row(row) for row in rows]
    total = {name: sum(row[name] for row in found) for name in ("turns", *_SUMS)}
    for one in (*found, total):
        one["costUsd"] = cost(one["costUsd"])
    return {"rows": found, "total": total}
