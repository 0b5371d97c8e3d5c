"""Every mutant, in the order of the table."""

from tests.mutants import (
    cache,
    clock,
    concurrency,
    leases,
    models,
    regression,
    sent,
    tools,
    writes,
)
from tests.mutants.catalogue import CATALOGUE

__all__ = [
    "CATALOGUE",
    "cache",
    "clock",
    "concurrency",
    "leases",
    "models",
    "regression",
    "sent",
    "tools",
    "writes",
]
