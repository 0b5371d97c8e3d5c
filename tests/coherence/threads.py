"""Several threads share one cache: every guard is checked against one-statement truth.

What the threads do is drawn from a seed; how they interleave is the machine's own affair.
"""

import random
import sys
import threading
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import OperationalError, connections

from gateway_app import receivers
from gateway_app.agent_cache import AgentCache
from gateway_app.cached_agent import GuardRefused, Profile
from gateway_app.services.prompts import freeze_prompt
from sessions_app.errors import SessionError
from sessions_app.fields import dump_json
from sessions_app.keys import web_key
from sessions_app.models import Message, Session
from sessions_app.selectors import read_visible
from sessions_app.services import (
    append_messages,
    create_session,
    delete_messages,
    edit_message,
    set_message_state,
)
from sessions_app.transcript import NewMessage
from tests.coherence.oracle import encoded, expected_pieces
from tests.coherence.processes import Process

WRITERS = (("append", "edit"), ("append", "delete"), ("edit", "state"), ("append", "raw"))
SEED = 20_260


class WrongCache(AssertionError):
    """A cached agent was not the transcript at its baseline."""

    def __init__(self, message: str, checks: int) -> None:
        super().__init__(message)
        self.checks = checks


@dataclass(slots=True)
class ThreadsReport:
    """What the threads did."""

    writes: int = 0
    guards: int = 0
    checks: int = 0
    """Guards and looks at which the revisions agreed, so that there was a truth to hold to."""
    refused: int = 0
    seconds: float = 0
    wrong: list[str] = field(default_factory=list)


class _Scene:
    """Three sessions, one cache, and the threads' common report."""

    def __init__(self, rounds: int, seconds: float) -> None:
        owner, _ = User.objects.get_or_create(username="threads")
        self.sessions = [
            create_session(
                key=web_key("main", owner.pk, uuid4()), owner_id=owner.pk, agent="main"
            ).pk
            for _ in range(3)
        ]
        config = freeze_prompt(("main", 0, "", "")).config
        Session.objects.filter(pk__in=self.sessions).update(
            agent_version=config[1], prompt_hash=config[3]
        )
        self.process = Process("threads")
        self.cache: AgentCache = self.process.cache
        self.profile: Profile = self.process.profile(config, None)
        self.report = ThreadsReport()
        self.lock = threading.Lock()
        self.rounds, self.until = rounds, monotonic() + seconds
        self.writing = len(WRITERS)

    def goes_on(self, done: int, *, writes: bool) -> bool:
        """Writers have their rounds; guards go on as long as somebody writes."""
        if self.report.wrong or monotonic() > self.until:
            return False
        return done < self.rounds if writes else self.writing > 0


def run_threads(*, rounds: int, seconds: float = 3600, seed: int = SEED) -> ThreadsReport:
    """So many rounds in each thread, or so long. Raises WrongCache."""
    scene, begun = _Scene(rounds, seconds), monotonic()
    receivers._caches.clear()
    receivers.register_cache(scene.cache)
    threads = [
        threading.Thread(target=_thread, args=(scene, _write, kinds, seed + number))
        for number, kinds in enumerate(WRITERS)
    ]
    threads += [
        threading.Thread(target=_thread, args=(scene, _guard, (place,), seed + 100 + place))
        for place in range(3)
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        receivers._caches.clear()
        Message.objects.filter(session_id__in=scene.sessions).delete()
        Session.objects.filter(pk__in=scene.sessions).delete()
    scene.report.seconds = monotonic() - begun
    if scene.report.wrong:
        raise WrongCache(scene.report.wrong[0], scene.report.checks)
    return scene.report


def _thread(scene: _Scene, work: object, what: tuple[object, ...], seed: int) -> None:
    draw, done, writes = random.Random(seed), 0, work is _write
    try:
        while scene.goes_on(done, writes=writes):
            work(scene, draw, what)  # type: ignore[operator]
            done += 1
    except Exception as exc:  # noqa: BLE001  the thread's end is the test's answer
        with scene.lock:
            scene.report.wrong.append(f"{type(exc).__name__}: {exc}")
    finally:
        with scene.lock:
            scene.writing -= writes
        connections.close_all()


def _write(scene: _Scene, draw: random.Random, kinds: tuple[str, ...]) -> None:
    """One write of one kind to one session; a lost race is an answer."""
    session_id, kind = draw.choice(scene.sessions), draw.choice(kinds)
    text = dump_json([{"type": "text", "text": f"word {draw.random()}"}])
    rows = Message.objects.filter(session_id=session_id).order_by("-position")
    recent = list(rows.values_list("pk", flat=True)[:30])
    try:
        if kind == "append" or not recent:
            if len(recent) < 30 or draw.random() < 0.5:
                message = NewMessage(kind="user", parts=text)
                append_messages(session_id=session_id, messages=[message])
        elif kind == "edit":
            edit_message(session_id=session_id, message_id=draw.choice(recent), parts=text)
        elif kind == "delete":
            delete_messages(session_id=session_id, message_ids=[draw.choice(recent)])
        elif kind == "state":
            state = draw.choice(["active", "hidden"])
            chosen = draw.choice(recent)
            set_message_state(session_id=session_id, message_ids=[chosen], state=state)
        else:
            parts = [{"type": "text", "text": text}]
            Message.objects.filter(pk=draw.choice(recent)).update(parts=parts)
    except SessionError:
        return
    except OperationalError as exc:
        # a bare UPDATE locks the row first, a service the session: PostgreSQL resolves it
        if getattr(exc.__cause__, "sqlstate", "") != "40P01":
            raise
    with scene.lock:
        scene.report.writes += 1


def _guard(scene: _Scene, _: random.Random, what: tuple[int, ...]) -> None:
    """One request of one session, and one look at its agent, against one statement."""
    session_id = scene.sessions[what[0]]
    try:
        guarded = scene.cache.guard(
            session_id, scene.profile, block=None, generation=1, last_sent=lambda _: None
        )
    except GuardRefused:
        with scene.lock:
            scene.report.refused += 1
        return
    loaded = read_visible(session_id)
    assert loaded is not None
    pieces = expected_pieces(loaded.rows, scene.profile.wire, None)
    agrees = loaded.clock.revision == guarded.revision
    wrong = agrees and guarded.pieces != pieces
    looked, lies = _look(scene, session_id)
    with scene.lock:
        report = scene.report
        report.guards += 1
        report.checks += agrees + looked
        if wrong:
            report.wrong.append(f"a request at {guarded.revision} is not the transcript")
        if lies:
            report.wrong.append(lies)


def _look(scene: _Scene, session_id: UUID) -> tuple[bool, str]:
    """(the revisions agreed, what was wrong)"""
    agent = scene.cache.get(session_id)
    if agent is None:
        return False, ""
    with agent.lock:
        baseline = agent.baseline
        held = [(row.id, row.piece) for row in agent.rows]
    loaded = read_visible(session_id)
    if loaded is None or (loaded.clock.revision, loaded.clock.incarnation) != baseline:
        return False, ""
    true = [(row.id, encoded(agent.wire, row)) for row in loaded.rows]
    if held == true:
        return True, ""
    return True, f"at {baseline[0]} the cache holds {len(held)} rows, {len(true)} are visible"
