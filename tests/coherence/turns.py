"""A turn's life through the real services: accept, guard, steps, end.

Only the model's answer is made up here. Every request is held against the oracle, and rows that
others append while a request is in flight must stand after its answer (causality).
"""

from contextlib import suppress
from uuid import UUID, uuid4

from django.db import transaction

from gateway_app.cached_agent import GuardRefused
from gateway_app.errors import QueueFull
from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.services.runs import RunWrite, RunWritten, TurnRecord, write_run
from gateway_app.services.starting import RunLease
from gateway_app.services.turns import accept_turn, start_next_turn
from sessions_app.errors import RunFenced
from sessions_app.fields import dump_json
from sessions_app.models import new_id
from sessions_app.transcript import NewMessage
from tests.coherence.oracle import Asked, Unreadable, expected_pieces
from tests.coherence.processes import Process
from tests.coherence.truth import Violation, require
from tests.coherence.world import REFUSALS, OpenTurn, Pick, World

TURN = Turn._meta.db_table


class _RolledBack(Exception):
    """Ends a transaction that is not to stand."""


def begin(world: World, session_id: UUID, process: Process, pick: Pick) -> None:
    """A message comes in: its turn runs, or waits, or is refused; or an old one is tried again."""
    world.count("accept")
    accepted = None
    with world.own(process, session_id, refusals=(*REFUSALS, QueueFull)):
        accepted = accept_turn(
            inbound=_inbound(world, session_id, pick),
            session_id=session_id,
            lease_owner=process.lease_owner,
        )
    if accepted is not None and accepted.run is not None:
        hold(world, process, accepted.run)
    elif accepted is not None and accepted.startable and pick.often():
        start_waiting_turn(world, session_id, process, pick)


def start_waiting_turn(world: World, session_id: UUID, process: Process, _: Pick) -> None:
    """The first waiting turn of a free session runs here."""
    started = None
    with world.own(process, session_id):
        started = start_next_turn(session_id=session_id, lease_owner=process.lease_owner)
    if started is not None:
        hold(world, process, started[0])


def _inbound(world: World, session_id: UUID, pick: Pick) -> Inbound:
    content = [{"type": "text", "text": f"question {next(world.numbers)}"}]
    retry_of = edit_of = None
    when_busy = "queue" if session_id not in world.turns or pick.rarely() else "reject"
    if when_busy == "reject" and pick.rarely():
        when_busy = "steer" if pick.often() else "interrupt"
    way = pick.below(8)
    if way == 0:
        found = world.client.rows(
            f"SELECT id FROM {TURN} WHERE session_id = %s AND block > 0 ORDER BY accepted_seq",
            [session_id],
        )
        ids = [one if isinstance(one, UUID) else UUID(one) for (one,) in found]
        retry_of = ids[pick.below(len(ids))] if ids else None
    elif way == 1:
        row = world.row(session_id, pick, kind="user", state="active")
        edit_of = row.id if row else None
    return Inbound(
        author_id=world.stage.owner.pk,
        author_name="coherence",
        client_message_id=str(uuid4()),
        body_hash="",
        content=None if retry_of else content,
        when_busy="reject" if retry_of or edit_of else when_busy,
        retry_of=retry_of,
        edit_of=edit_of,
    )


def hold(world: World, process: Process, run: RunLease, record: TurnRecord | None = None) -> None:
    """The process runs the turn from now on; its agent stays."""
    process.cache.pin(run.session_id)
    world.turns[run.session_id] = OpenTurn(process, run, record or TurnRecord())


def let_go(world: World, session_id: UUID) -> OpenTurn:
    """The turn is no longer this process's."""
    turn = world.turns.pop(session_id)
    if session_id in turn.process.cache._pins:
        turn.process.cache.unpin(session_id)
    return turn


def ask(world: World, session_id: UUID, *, raced: bool = False) -> bool:
    """The guard runs for the session's open turn; False if it refused."""
    world.count("request")
    turn = world.turns[session_id]
    process, run = turn.process, turn.run
    if not process.warm and turn.sent is None:
        process.cache.unpin(session_id)
        process.cache.evict(session_id)
        process.cache.pin(session_id)
    agent, stored = process.agent(session_id), world.stored(session_id)
    if agent is not None and agent.baseline[0] < 0:
        agent = None  # refused, or reconfigured, before it was ever loaded
    asked = Asked(agent and agent.wire, agent and agent.baseline, *stored.baseline, raced)
    try:
        guarded, profile = process.guard(run, turn.config)
    except GuardRefused as refused:
        check_refusal(world, session_id, refused, process.profile(run.config, run.frozen).wire,
                      run.block)  # fmt: skip
        return False
    visible = world.truth.at.get((session_id, (guarded.revision, stored.incarnation)))
    if visible is None:
        raise Violation("I7 request", f"nobody ever committed revision {guarded.revision}")
    turn.sent = world.oracle.judge(
        session_id, process.agent(session_id), asked, guarded, profile, visible, run.block
    )
    turn.unanswered, turn.record.sent, turn.config = True, guarded.record, profile.config
    world.settle()
    if not raced:
        live = world.stored(session_id).baseline
        require(world.baseline(process, session_id) == live, "I2 liveness", "behind after a guard")
        true = world.config(session_id)
        require(profile.config == true, "config", f"sent as {profile.config}, it is {true}")
    return True


def check_refusal(
    world: World, session_id: UUID, refused: GuardRefused, wire: object, block: int | None
) -> None:
    """A refusal has its cause in the database."""
    state, deleted = world.lifecycle(session_id)
    reason = refused.reason.value
    if reason in {"ended", "deleted"}:
        true = "deleted" if deleted else "ended" if state != "active" else "live"
        require(reason == true, "refuse", f"{reason}, but the session is {true}")
        return
    try:
        expected_pieces(world.stored(session_id).visible, wire, block)  # type: ignore[arg-type]
    except Unreadable:
        return
    raise Violation("refuse", f"{reason}: {refused}, but every row can be read")


def write(world: World, session_id: UUID, run_write: RunWrite) -> RunWritten | None:
    """One transaction of the run; None if it was fenced. Causality and the record are checked."""
    turn = world.turns[session_id]
    written = None
    with world.own(turn.process, session_id):
        try:
            written = write_run(write=run_write)
        except RunFenced:
            require(turn.fenced, "fence", "a run that holds its session was fenced")
            raise
    if written is None:
        let_go(world, session_id)
        return None
    require(not turn.fenced, "fence", "a run wrote that no longer holds its session")
    check_written(world, session_id, turn, run_write)
    turn.unanswered = False
    return written


def check_written(world: World, session_id: UUID, turn: OpenTurn, run_write: RunWrite) -> None:
    """The rows stand in the run's block, before whatever others appended meanwhile."""
    rows = world.stored(session_id).rows
    last = max((message.position for message in run_write.messages), default=0)
    require(last < (turn.run.block + 1) * 1_000_000, "causality", "a row left the run's block")
    for row_id, position in turn.beside.items():
        if row_id in rows and rows[row_id].position == position:
            require(last < position, "causality", f"the answer at {last} did not see {position}")
    if turn.sent is None:
        return
    found = world.client.rows(
        f"SELECT sent_revision, sent_rows, sent_digest, sent_signature FROM {TURN} WHERE id = %s",
        [turn.run.turn_id],
    )[0]
    record = turn.record.sent
    assert record is not None
    told = (record.revision, record.rows, record.digest, record.signature)
    require(found == told, "sent", f"the turn says {found}, sent was {told}")
    world.oracle.recorded(session_id, turn.sent)


def step(world: World, session_id: UUID, pick: Pick) -> None:
    """The model called tools: the calls and their results are one transaction."""
    world.count("step")
    turn = world.turns[session_id]
    call = f"call-{next(world.numbers)}"
    parts = [{"type": "tool_call", "id": call, "name": "look", "arguments": "{}"}]
    if pick.often():
        parts.insert(0, {"type": "text", "text": f"thinking {call}"})
    result = [{"type": "tool_result", "callId": call, "content": f"found {call}"}]
    messages = [
        NewMessage(kind="assistant", parts=dump_json(parts), finish="tool_calls"),
        NewMessage(kind="tool", parts=dump_json(result)),
    ]
    turn.steps += 1
    write(
        world,
        session_id,
        RunWrite(run=turn.run, messages=messages, record=turn.record, absorb=True),
    )


def roll_back_step(world: World, session_id: UUID, _: Process, pick: Pick) -> None:
    """A run's transaction is taken back whole, with its log; the run goes on as if it never was."""
    turn = world.turns.get(session_id)
    if turn is None or turn.orphaned or not turn.unanswered:
        return
    lost = NewMessage(kind="assistant", parts=world.text())
    state = "completed" if pick.below(2) else None
    with world.signals.of(turn.process), suppress(_RolledBack), transaction.atomic():
        write_run(write=RunWrite(run=turn.run, messages=[lost], record=turn.record, state=state))
        raise _RolledBack
    require(not world.settle(), "rollback", "a transaction that broke left something behind")


def finish(world: World, session_id: UUID, pick: Pick) -> None:
    """The turn ends: answered, failed or stopped; the next waiting one may start with it."""
    world.count("finish")
    turn = world.turns[session_id]
    state = ["completed", "completed", "completed", "failed", "stopped"][pick.below(5)]
    messages: list[NewMessage] = []
    if state != "failed" or pick.often():
        messages.append(NewMessage(kind="assistant", parts=world.text(), id=new_id(), finish=state))
    if state == "failed":
        messages.append(NewMessage(kind="notice", parts=world.text(), finish="model_unavailable"))
    if turn.run.first_turn and not turn.meta_written:
        meta = NewMessage(kind="session_meta", parts='[{"type":"session_meta","tools":[]}]')
        messages.insert(pick.below(len(messages) + 1), meta)
    agent = turn.process.agent(session_id)
    written = write(
        world,
        session_id,
        RunWrite(
            run=turn.run,
            messages=messages,
            record=turn.record,
            state=state,
            lease_owner=turn.process.lease_owner if pick.often() else None,
        ),
    )
    if written is None:
        return
    let_go(world, session_id)
    if turn.quiet and turn.sent is not None and turn.process.warm:
        still = turn.process.agent(session_id)
        require(still is turn.sent.agent is agent, "I2 liveness", "the agent was replaced")
        live = world.stored(session_id).baseline
        require(
            world.baseline(turn.process, session_id) == live,
            "I2 liveness",
            "the turn looks foreign",
        )
    if written.next_run is not None:
        hold(world, turn.process, written.next_run)


def whole_step(world: World, session_id: UUID, pick: Pick) -> None:
    """Whatever comes next in the open turn: a request, a tool step, a marker, or its end."""
    turn = world.turns[session_id]
    if not turn.unanswered:
        if not ask(world, session_id):
            refuse(world, session_id)
        return
    if turn.run.first_turn and not turn.meta_written and pick.rarely():
        meta = NewMessage(kind="session_meta", parts='[{"type":"session_meta","tools":[]}]')
        turn.meta_written = True
        world.count("meta alone")
        write(world, session_id, RunWrite(run=turn.run, messages=[meta], record=turn.record))
        turn.unanswered = True
    elif turn.steps < 3 and pick.below(2):
        step(world, session_id, pick)
    else:
        finish(world, session_id, pick)


def refuse(world: World, session_id: UUID) -> None:
    """The guard refused: the turn is closed by a notice, as the runner does."""
    turn = world.turns[session_id]
    world.count("refused")
    notice = NewMessage(kind="notice", parts=world.text(), finish="storage")
    write(world, session_id, RunWrite(run=turn.run, messages=[notice], record=turn.record,
                                      state="failed"))  # fmt: skip
    if session_id in world.turns:
        let_go(world, session_id)
