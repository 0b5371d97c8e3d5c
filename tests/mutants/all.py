"""Every mutant, in the order of the table."""

from tests.mutants import cache, clock, sent, writes
from tests.mutants.catalogue import CATALOGUE

__all__ = ["CATALOGUE", "cache", "clock", "sent", "writes"]
