"""An operator's orders, given on a thread of Django's own: after the commit everybody acts at once.

This process's gateway carries them out, and wakes the others. Where no gateway runs, polls find
what the database says.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import UUID
from weakref import WeakSet

from django.db import transaction

from gateway_app.event_store import LoggedEvents
from sessions_app import database as db


@dataclass(frozen=True, slots=True)
class Order:
    """`stop`: (turn, generation) of the run that was told to stop; `work`: a turn may start."""

    logged: tuple[LoggedEvents, ...] = ()
    stop: tuple[UUID, int] | None = None
    work: bool = False


class Obeying(Protocol):
    """A gateway, as orders see it."""

    def obey_from_thread(self, order: Order) -> None: ...


_gateways: WeakSet[Obeying] = WeakSet()


def register_gateway(gateway: Obeying) -> None:
    """From now on it hears of the orders that are given in this process."""
    _gateways.add(gateway)


def forget_gateway(gateway: Obeying) -> None:
    _gateways.discard(gateway)


def give(order: Order) -> None:
    """After the commit, clients hear of it and runs obey it, in all processes."""
    transaction.on_commit(partial(_give, order), using=db.alias(), robust=True)


def _give(order: Order) -> None:
    for gateway in list(_gateways):
        gateway.obey_from_thread(order)
