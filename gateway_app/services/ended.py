"""Turns that end without a run of their own are counted by the transaction that ends them."""

from functools import partial

from django.db import transaction

from gateway_app import metrics
from sessions_app import database as db


def count_ended(state: str, number: int) -> None:
    """So many more turns have ended in `state` once the caller's transaction is committed."""
    if number:
        count = partial(metrics.turns.labels(state, "").inc, number)
        transaction.on_commit(count, using=db.alias(), robust=True)
