"""`python -m tests.chaos [--seconds N] [--seed N]`: breaks a real installation and judges it."""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import psycopg

from tests.fake_model_server import FakeModelServer
from tests.model_scripts import Json, Script, ToolCall

if TYPE_CHECKING:
    from tests.chaos.person import Person
    from tests.chaos.place import Place

POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
CALM_S = 240
"""After the last fault every turn must have ended within this: a lease, runs, what waits."""


def answer(body: Json) -> Script:
    """Short answers that depend on the question; every fifth first calls a tool."""
    last = body["messages"][-1]
    number = crc32(str(last["content"]).encode())
    words = [f"word{number % 97} {place} " for place in range(3 + number % 9)]
    if last["role"] == "user" and number % 5 == 0:
        call = ToolCall(f"t{number}", "look", ['{"for_s": 0.4}'])
        return Script(tokens=words[:2], token_delay_s=0.05, tool_calls=[call])
    return Script(tokens=words, first_token_delay_s=0.05, token_delay_s=0.08)


def main(argv: list[str] | None = None) -> int:
    """Prints what was done and how the turns ended; raises what was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--postgres", default=os.environ.get("DATABASE_URL") or POSTGRES)
    options = parser.parse_args(argv)
    say(f"seed {options.seed}")
    with FakeModelServer() as model, tempfile.TemporaryDirectory() as folder:
        model.default = answer
        asyncio.run(_run(options, model, Path(folder)))
    return 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _run(options: argparse.Namespace, model: FakeModelServer, folder: Path) -> None:
    from tests.chaos.faults import Faults
    from tests.chaos.person import Person
    from tests.chaos.place import Place

    rng = random.Random(options.seed)
    place = Place(
        postgres=options.postgres, model_url=model.url, workers=options.workers,
        folder=folder / "data",
    )  # fmt: skip
    async with place:
        people = [
            Person(number, place.url, place.token, random.Random(rng.random()))
            for number in range(options.people)
        ]
        faults = Faults(place, random.Random(rng.random()))
        breaking = asyncio.create_task(faults.run())
        until = asyncio.get_running_loop().time() + options.seconds
        try:
            await asyncio.gather(*(person.live(until) for person in people))
        finally:
            breaking.cancel()
            await asyncio.gather(breaking, return_exceptions=True)
        began = time.monotonic()
        try:
            await asyncio.gather(*(person.settle(CALM_S) for person in people))
        except TimeoutError:
            say(await asyncio.to_thread(_still_open, place.database_url))
            raise
        calm_s = time.monotonic() - began
        for person in people:
            await person.leave()
        states = await _judge(place, people, model)
        done = sum((person.done for person in people), Counter())
        say(f"broken: {_words(faults.done)}")
        say(f"people: {_words(done)}; messages: {sum(len(one.acknowledged) for one in people)}")
        say(f"turns: {_words(states)}; requests: {len(model.requests)}; calm after {calm_s:.1f} s")
    assert place.exit_code == 0, place.exit_code


def _still_open(database_url: str) -> str:
    """The turns that did not end, and who holds their sessions."""
    with psycopg.connect(database_url, autocommit=True) as server:
        found = server.execute(
            "SELECT t.id, t.state, t.generation, t.runs, t.stop_requested_at, s.id,"
            " s.run_generation, s.open_block, s.lease_owner, s.lease_expires_at - now()"
            " FROM gateway_app_turn t JOIN sessions_app_session s ON s.id = t.session_id"
            " WHERE t.state IN ('queued', 'running')"
        ).fetchall()
    return "\n".join(map(str, found)) or "no turn is open: its end did not reach its person"


async def _judge(place: "Place", people: "list[Person]", model: FakeModelServer) -> Counter[str]:
    """In this process, with Django on the very database."""
    os.environ["DATABASE_URL"] = place.database_url
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    from django.db import connections

    from tests.chaos.verdict import judge

    def judged() -> Counter[str]:
        try:
            return judge(people, model.requests, place.diary)
        finally:
            connections.close_all()

    return await asyncio.to_thread(judged)


def _words(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"


if __name__ == "__main__":
    raise SystemExit(main())
