"""One answer of `/metrics` for all workers of a group.

Each worker keeps what it counts in files of its own in the group's folder; whoever is asked reads
those of all. That is prometheus_client's multiprocess mode.
"""

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_folder: Path | None = None


def join(folder: Path, place: int) -> None:
    """This process is the worker at `place`. To be called before the first metric is made.

    A worker that takes a dead one's place counts on from where that was.
    """
    global _folder
    _folder = folder
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)  # where the library looks for it
    values.ValueClass = values.MultiProcessValue(lambda: place)


def leave(folder: Path, place: int) -> None:
    """The worker at `place` is dead: what was so at its last moment is no more."""
    mark_process_dead(place, path=str(folder))


def in_group() -> bool:
    return _folder is not None


def of_group(own: CollectorRegistry) -> CollectorRegistry:
    """`own`, or in a group what stands for all of it."""
    if _folder is None:
        return own
    registry = CollectorRegistry(auto_describe=False)
    MultiProcessCollector(registry, path=str(_folder))
    return registry
