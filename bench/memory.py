"""What one more cached short session keeps in memory; prints its bytes.

`python -m bench.memory SESSIONS`, with DJANGO_SETTINGS_MODULE set. Short: three exchanges of 60 and
400 characters, read and sent like any other.
"""

import gc
import json
import sys
from pathlib import Path
from uuid import UUID

import django

django.setup()

from gateway_app.cached_agent import CachedAgent  # noqa: E402
from gateway_app.providers.openai_chat import OpenAIChatWire  # noqa: E402
from sessions_app.models import BLOCK, new_id  # noqa: E402
from sessions_app.signals import TranscriptRow  # noqa: E402


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def rows(number: int) -> list[TranscriptRow]:
    """A short session's rows; no text is shared between sessions."""
    found = []
    for block in range(1, 4):
        for place, (kind, length) in enumerate((("user", 60), ("assistant", 400)), start=1):
            text = f"{number} {block} {kind} ".ljust(length, "x")
            parts = json.dumps([{"type": "text", "text": text}])
            found.append(
                TranscriptRow(new_id(), block * BLOCK + place, kind, "active", parts, None)
            )
    return found


def fill(agents: dict[UUID, CachedAgent], numbers: range) -> None:
    wire, signature = OpenAIChatWire(), "signature"
    for number in numbers:
        session_id = new_id()
        agent = agents[session_id] = CachedAgent(session_id, wire, signature)
        agent.replace((-1, 0), (6, 1), rows(number))
        agent.mark_sent(agent.request(None), 6, 1)


def main() -> None:
    count = int(sys.argv[1])
    agents: dict[UUID, CachedAgent] = {}
    fill(agents, range(count // 10))
    gc.collect()
    before = rss_bytes()
    fill(agents, range(count // 10, count))
    gc.collect()
    sys.stdout.write(json.dumps((rss_bytes() - before) / (count - count // 10)))


if __name__ == "__main__":
    main()
