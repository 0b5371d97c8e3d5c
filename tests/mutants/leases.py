"""Faults of who runs a turn whose lease this process holds."""

from typing import Any

from gateway_app.services import recovery
from gateway_app.turns.runner import TurnRunner
from tests.mutants.catalogue import mutant, patch

IN_DOUBT = "tests/gateway_app/test_in_doubt.py::test_it_"


@mutant(
    "a process waits for its own lease to run out",
    proof=IN_DOUBT + "runs_at_the_next_beat_what_was_started_in_doubt",
)
def _() -> None:
    patch(recovery, "find_orphans", lambda real: lambda **_: real())


@mutant(
    "a process takes up what it is about to run",
    proof=IN_DOUBT + "leaves_alone_what_it_is_about_to_run",
)
def _() -> None:
    def has_in_hand(self: TurnRunner, orphan: Any) -> bool:
        return orphan.turn_id in self.live

    TurnRunner.has_in_hand = has_in_hand  # type: ignore[method-assign]
