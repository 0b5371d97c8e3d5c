"""What a mutant is, and the list of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BOTH = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault. `apply` is called after Django's setup and before the database is made.

    `proof` is what must catch it: the state machine, the threads, or the founding regression.
    `harmless`: why nothing can catch it, by database.
    """

    name: str
    apply: Callable[[], None]
    databases: tuple[str, ...] = BOTH
    proof: str = "machine"
    harmless: dict[str, str] | None = None


CATALOGUE: dict[str, Mutant] = {}


def mutant(
    name: str,
    *,
    databases: tuple[str, ...] = BOTH,
    proof: str = "machine",
    harmless: dict[str, str] | None = None,
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Lists the decorated function as a fault."""

    def listed(apply: Callable[[], None]) -> Callable[[], None]:
        assert name not in CATALOGUE
        CATALOGUE[name] = Mutant(name, apply, databases, proof, harmless)
        return apply

    return listed


def patch(owner: Any, name: str, build: Callable[[Any], Any]) -> None:
    """Puts `build(the real one)` in the place of an attribute, in this process."""
    setattr(owner, name, build(getattr(owner, name)))
