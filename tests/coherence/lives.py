"""Lives of processes and sessions: eviction, crash, takeover, recovery, restore, switch, change."""

from uuid import UUID, uuid4

from django.db import transaction

from gateway_app import events
from gateway_app.cached_agent import GuardRefused
from gateway_app.event_store import RunBatch, flush_runs
from gateway_app.models import Turn
from gateway_app.services.prompts import freeze_prompt
from gateway_app.services.queue import stop_turn
from gateway_app.services.recovery import find_orphans, recover_turn, release_runs
from gateway_app.services.runs import RunWrite, write_run
from gateway_app.services.sessions import change_session
from gateway_app.services.starting import RunLease
from sessions_app.errors import RunFenced
from sessions_app.models import Message, Session, new_id
from sessions_app.services import delete_session, end_session, restore_session
from sessions_app.transcript import NewMessage
from tests.coherence.processes import Process
from tests.coherence.raw import SESSION
from tests.coherence.truth import Violation, require
from tests.coherence.turns import begin, hold, let_go, whole_step
from tests.coherence.world import OpenTurn, Operation, Pick, World


def evict(world: World, session_id: UUID, process: Process, _: Pick) -> None:
    """The process forgets an agent, unless it runs."""
    turn = world.turns.get(session_id)
    runs = turn is not None and turn.process is process and not turn.orphaned
    gone = process.cache.evict(session_id)
    require(not (gone and runs), "eviction", "a running turn's agent was evicted")


def restart(world: World, _: UUID, process: Process, __: Pick) -> None:
    """A process ends in peace and begins again."""
    if all(turn.process is not process for turn in world.turns.values()):
        process.start()


def crash(world: World, _: UUID, process: Process, pick: Pick) -> None:
    """A process dies: its cache is gone, its leases run out; what it had shown is in the log."""
    for session_id, turn in world.turns.items():
        if turn.process is process and not turn.orphaned:
            if pick.below(2) and not turn.fenced:
                _show(turn)
            _expire(world, session_id)
            turn.orphaned = True
    process.start()


def _show(turn: OpenTurn) -> None:
    """A person has seen the beginning of an answer."""
    message_id, run = new_id(), turn.run
    shown = (events.text_start(message_id), events.text_content(str(message_id), "shown"))
    flush_runs([RunBatch(run.session_id, run.turn_id, run.generation, shown)])


def _expire(world: World, session_id: UUID) -> None:
    world.client.run(f"UPDATE {SESSION} SET lease_expires_at = NULL WHERE id = %s", [session_id])


def release(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """A drain gives up its run; the process lives on, and may be the one that takes it again."""
    turn = world.turns.get(session_id)
    if turn is None or turn.orphaned:
        return
    if pick.below(2):
        _show(turn)
    release_runs(turn_ids=[turn.run.turn_id], lease_owner=turn.process.lease_owner)
    turn.orphaned = True
    if pick.below(2):
        recover(world, session_id, turn.process if pick.below(2) else process, pick)


def recover(world: World, _: UUID, process: Process, pick: Pick) -> None:
    """The process takes over every turn whose lease ran out, or ends it."""
    for orphan in find_orphans():
        session_id = orphan.session_id
        if session_id not in world.sessions:
            continue
        if pick.rarely():
            owner = world.stage.owner.pk
            stop_turn(user_id=owner, session_id=session_id, turn_id=None)
        recovered = None
        with world.own(process, session_id):
            recovered = recover_turn(
                orphan=orphan, lease_owner=process.lease_owner, resume=pick.often()
            )
        require(recovered, "recovery", "an orphan was not taken over")
        assert recovered is not None
        old = let_go(world, session_id)
        old.fenced = True
        if recovered.run is not None:
            hold(world, process, recovered.run)
            world.turns[session_id].beside = old.beside
            world.turns[session_id].meta_written = True


def take_over(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Another process recovers a turn whose own process still lives: that one is fenced."""
    turn = world.turns.get(session_id)
    if turn is None or turn.process is process or turn.orphaned:
        return
    _expire(world, session_id)
    recover(world, session_id, process, pick)
    _write_fenced(world, turn)


def _write_fenced(world: World, turn: OpenTurn) -> None:
    late = NewMessage(kind="assistant", parts=world.text())
    try:
        with world.signals.of(turn.process):
            write_run(write=RunWrite(run=turn.run, messages=[late], state="completed"))
    except RunFenced:
        require(not world.settle(), "fence", "a fenced run left something behind")
        return
    raise Violation("fence", "a run wrote that no longer holds its session")


def delete_softly(world: World, session_id: UUID, process: Process, _: Pick) -> None:
    """Deleted by its owner and taken back: refused in between, the clock stands still."""
    delete_session(session_id=session_id)
    require(not world.settle(), "I1 moves", "a soft delete moved the clock")
    probe(world, session_id, process, "deleted")
    turn = world.turns.get(session_id)
    if turn is not None:
        turn.fenced = turn.orphaned = True
        _write_fenced(world, turn)
    restore_session(session_id=session_id, owner_id=world.stage.owner.pk)


def switch_session(world: World, _: UUID, process: Process, __: Pick) -> None:
    """The key's current session ends, the other one is current again."""
    first, second = world.sessions[:2]
    current, other = (first, second) if world.lifecycle(first)[0] == "active" else (second, first)
    if current in world.turns:
        return
    with world.own(process, current):
        end_session(session_id=current)
    Session.objects.filter(pk=other).update(state="active", ended_at=None)
    probe(world, current, process, "ended")


def probe(world: World, session_id: UUID, process: Process, reason: str) -> None:
    """The guard refuses the session, and its cached agent stays as it was."""
    world.count("probe")
    config = freeze_prompt(world.config(session_id)).config
    block = world.stored(session_id).next_block
    run = RunLease(session_id, uuid4(), 2**40, block, config, None)
    try:
        process.guard(run)
    except GuardRefused as refused:
        require(refused.reason.value == reason, "refuse", f"{refused.reason} for {reason}")
        return
    raise Violation("refuse", f"a {reason} session was answered")


def reconfigure(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """Another agent (at its current version) or another model, also while a turn runs."""
    agents, models = ("main", "second"), ("", "openai:fake-3", "other:fake-1")
    with world.own(process, session_id):
        change_session(
            user_id=world.stage.owner.pk,
            session_id=session_id,
            agent=agents[pick.below(2)] if pick.below(2) else None,
            model=models[pick.below(3)] if pick.below(2) else None,
        )


def restore(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """A session is deleted for good and inserted again under its id, as a backup or an older one.

    Its revision ends exactly where it was: only the incarnation tells the two apart.
    """
    if session_id in world.turns:
        return
    before = world.stored(session_id)
    session = Session.objects.values().get(pk=session_id)
    rows = list(Message.objects.filter(session_id=session_id).values())
    turns = list(Turn.objects.filter(session_id=session_id).values())
    ticks = len(rows) if world.client.sqlite else int(bool(rows))
    session["revision"] = before.revision - ticks
    session["removed_revision"] = min(session["removed_revision"], session["revision"])
    whole = bool(pick.below(2))
    if not whole:
        session["run_generation"] = max(session["run_generation"] - pick.below(4), 0)
    if rows and pick.below(2):
        rows[pick.below(len(rows))]["sent_parts"] = [{"type": "text", "text": "another"}]
    Session.objects.get(pk=session_id).delete()
    with transaction.atomic():
        Session.objects.bulk_create([Session(**session)])
        Message.objects.bulk_create([Message(**row) for row in rows])
        Turn.objects.bulk_create([Turn(**turn) for turn in turns] if whole else [])
    world.oracle.reborn(session_id, with_turns=whole)
    world.settle()
    now = world.stored(session_id)
    require(now.incarnation != before.incarnation, "I1 incarnation", "it survived a restore")
    require(now.revision == before.revision, "I1 restore", "the revision is not the old one")
    begin(world, session_id, process, pick)
    if session_id in world.turns:
        whole_step(world, session_id, pick)


LIVES: dict[str, Operation] = {
    "evict": evict,
    "restart": restart,
    "crash": crash,
    "release": release,
    "recover": recover,
    "take over": take_over,
    "delete softly": delete_softly,
    "switch session": switch_session,
    "reconfigure": reconfigure,
    "restore": restore,
}
