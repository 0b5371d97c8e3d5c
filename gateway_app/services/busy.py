"""What a message does when another turn runs: wait, stop that one first, steer it, or not come."""

from typing import Final
from uuid import UUID

from django.db.models import Max, Q
from django.utils import timezone

from gateway_app.errors import Unsupported
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.selectors.queue import OPEN, WAITING
from sessions_app.errors import SessionBusy
from sessions_app.sentences import Sentence, say

POLICIES: Final = ("queue", "interrupt", "steer", "reject")
"""Ways of a message."""
_BRANCH_POLICIES: Final = ("reject", "interrupt")
"""Ways of an edit or a retry: behind other turns it would replace them."""


def check_policy(inbound: Inbound) -> None:
    """Raises Unsupported for a way that this message does not have."""
    offered = _BRANCH_POLICIES if inbound.branches else POLICIES
    if inbound.when_busy not in offered:
        raise Unsupported(_not_offered(inbound.when_busy, offered))


def check_change(when_busy: str, *, branches: bool) -> None:
    """The same of a message that waits already, which nothing rejects any more."""
    offered = ("interrupt",) if branches else ("queue", "interrupt", "steer")
    if when_busy not in offered:
        raise Unsupported(_not_offered(when_busy, offered))


def _not_offered(when_busy: str, offered: tuple[str, ...]) -> Sentence:
    return say(
        "whenBusy='%(asked)s' is not offered here. Offered are: %(offered)s.",
        asked=when_busy,
        offered=", ".join(offered),
    )


def waiting_status(when_busy: str, open_block: int) -> str:
    """What the author of a waiting turn is told: a run that can still be steered, or a queue."""
    return "steered" if when_busy == "steer" and open_block else "queued"


def refuse_second_branch(session_id: UUID) -> None:
    """Within the caller's transaction: raises SessionBusy while an edit or a retry waits.

    Each would replace what the other one is about.
    """
    branches = Q(edit_of__isnull=False) | Q(retry_of__isnull=False)
    if Turn.objects.filter(WAITING, branches, session_id=session_id).exists():
        raise SessionBusy


def head_priority(session_id: UUID) -> int:
    """Within the caller's transaction: the priority of a turn that goes before all that wait."""
    waiting = Turn.objects.filter(WAITING, session_id=session_id)
    highest = waiting.aggregate(highest=Max("priority"))["highest"]
    return max(highest or 0, 0) + 1


def request_stop(session_id: UUID, turn_id: UUID | None = None) -> tuple[UUID, int] | None:
    """Within the caller's transaction: the open turn (if it is `turn_id`) is told to stop.

    (turn, generation) of the run that this is meant for; whoever runs it reads the order.
    """
    turns = Turn.objects.filter(OPEN, session_id=session_id)
    if turn_id is not None:
        turns = turns.filter(pk=turn_id)
    running = turns.values_list("pk", "generation").first()
    if running is not None:
        Turn.objects.filter(pk=running[0], stop_requested_at=None).update(
            stop_requested_at=timezone.now()
        )
    return running
