"""How warm turns were: each turn counts once, by the worst that the guard said of it."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Case, CharField, Count, Q, Value, When

REBUILT: Final = Q(verdict="rebuild") | Q(worst_verdict="rebuild")
CAUGHT_UP: Final = Q(verdict="catch_up") | Q(worst_verdict="catch_up")
LOADED: Final = Q(verdict="reload") | Q(worst_verdict="reload")

STANDING: Final = Case(
    When(REBUILT, then=Value("rebuild")),
    When(CAUGHT_UP, then=Value("catch_up")),
    When(LOADED, then=Value("reload")),
    When(verdict="reuse", then=Value("reuse")),
    default=Value(""),
    output_field=CharField(),
)
"""One of `reuse`, `catch_up`, `reload`, `rebuild`; empty for a first request and a refusal."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Numbers of turns, each under its standing."""

    reuse: int = 0
    catch_up: int = 0
    reload: int = 0
    rebuild: int = 0

    @property
    def total(self) -> int:
        return self.reuse + self.catch_up + self.reload + self.rebuild

    def percent(self, standing: str) -> int:
        """The standing's share, rounded down, so that 100 means all; 0 of nothing."""
        count: int = getattr(self, standing)
        return count * 100 // self.total if self.total else 0


def count_shares() -> dict[str, Count]:
    """Aggregates by the names of Shares' fields."""
    rebuilt, caught = REBUILT, CAUGHT_UP & ~REBUILT
    loaded = LOADED & ~CAUGHT_UP & ~REBUILT
    warm = Q(verdict="reuse") & ~LOADED & ~CAUGHT_UP & ~REBUILT
    return {
        "reuse": Count("pk", filter=warm),
        "catch_up": Count("pk", filter=caught),
        "reload": Count("pk", filter=loaded),
        "rebuild": Count("pk", filter=rebuilt),
    }
