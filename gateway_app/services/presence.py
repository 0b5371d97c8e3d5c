"""What serving processes tell of themselves, and the orders that operators leave them there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db.models import F

from gateway_app.models import Presence
from sessions_app import database as db

_PRESENCE: Final = Presence._meta.db_table


@dataclass(frozen=True, slots=True)
class PresenceReport:
    """One process as it is now. `evict_done` is the last order to evict that it obeyed."""

    owner: str
    cached_agents: int
    cached_agents_limit: int
    cached_bytes: int
    baselines: Mapping[UUID, int] = field(default_factory=dict)
    evict_done: int = 0
    evicted: int = 0


def renew_presence(report: PresenceReport) -> int:
    """The process is present, by the database's clock; the number of the last order to evict."""
    values = {
        "owner": report.owner,
        "cached_agents": report.cached_agents,
        "cached_agents_limit": report.cached_agents_limit,
        "cached_bytes": report.cached_bytes,
        "baselines": json.dumps({one.hex: number for one, number in report.baselines.items()}),
        "evict_done": report.evict_done,
        "evicted": report.evicted,
    }
    told = ", ".join(f"{name} = excluded.{name}" for name in values if name != "owner")
    found = db.rows(
        f"INSERT INTO {_PRESENCE} ({', '.join(values)}) VALUES ({', '.join(['%s'] * len(values))})"
        f" ON CONFLICT (owner) DO UPDATE SET {told}, seen_at = {db.now_sql()}"
        " RETURNING evict_asked",
        list(values.values()),
    )
    return int(found[0][0])


def end_presence(owner: str) -> None:
    """The process is gone, and said so."""
    db.execute(f"DELETE FROM {_PRESENCE} WHERE owner = %s", [owner])


def ask_eviction(*, owner: str) -> bool:
    """The process drops its idle agents at its next beat; False if it is no longer there."""
    return Presence.objects.filter(pk=owner).update(evict_asked=F("evict_asked") + 1) > 0
