"""What each command of `/ws/v1/` does: translate, delegate, answer. Errors are the caller's."""

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db.models import F

from gateway_app import __version__, protocol
from gateway_app.connection import Caller, Connection
from gateway_app.inbound import Inbound
from gateway_app.model_offer import offered_models
from gateway_app.models import Agent
from gateway_app.protocol import FrameError, content_parts
from gateway_app.release import release
from gateway_app.selectors import sessions as reads
from gateway_app.services import queue as queues
from gateway_app.services import sessions as writes
from gateway_app.services.branches import switch_branch
from gateway_app.services.busy import POLICIES
from gateway_app.services.turns import Accepted
from sessions_app.sentences import say

Result = Any


async def hello(connection: Connection, command: protocol.Hello) -> Result:
    if command.protocol != protocol.PROTOCOL:
        raise FrameError(
            "unsupported",
            say("This server speaks %(protocol)s.", protocol=protocol.PROTOCOL),
            command.id,
        )
    connection.greeted = True
    config = connection.host.config
    agents = await connection.host.lanes.read(_agents)
    return {
        "user": {"id": connection.user_id, "name": connection.user_name},
        "server": {
            "name": "hermes",
            "version": __version__,
            "release": release(),
            "draining": connection.host.draining,
            "storing": connection.host.storage.storing,
        },
        "agents": agents,
        "whenBusy": list(POLICIES),
        "limits": {
            "maxFrameBytes": config.max_frame_bytes,
            "maxQueued": config.max_queued,
            "heartbeatMs": round(config.heartbeat_ping_s * 1000),
        },
    }


def _agents() -> list[dict[str, Any]]:
    current = Agent.objects.filter(versions__number=F("current_version"))
    found = current.order_by("-is_default", "name").values_list(
        "slug", "name", "is_default", "versions__model"
    )
    return [
        {"slug": slug, "name": name, "default": default, "model": model}
        for slug, name, default, model in found
    ]


async def model_list(connection: Connection, command: protocol.ModelList) -> Result:
    return {"models": await offered_models(connection.host.lanes, connection.host.providers)}


async def session_create(connection: Caller, command: protocol.SessionCreate) -> Result:
    lanes = connection.host.lanes
    session, made = await lanes.write(
        writes.create_web_session,
        user_id=connection.user_id,
        create_id=command.client_message_id,
        agent=command.agent,
        title=command.title or "",
    )
    _, shape = await lanes.read(reads.own_listed, connection.user_id, session.pk)
    return {"session": shape, "replayed": not made}


async def session_list(connection: Caller, command: protocol.SessionList) -> Result:
    return await connection.host.lanes.read(
        reads.list_sessions,
        user_id=connection.user_id,
        query=command.query,
        cursor=command.cursor,
        limit=command.limit,
        archived=command.archived,
        pinned=command.pinned,
    )


async def session_subscribe(connection: Connection, command: protocol.SessionSubscribe) -> Result:
    """Attaches first, then reads, then sends what came meanwhile: nothing falls between."""
    lanes, session_id = connection.host.lanes, command.session_id
    read = partial(lanes.read, user_id=connection.user_id, session_id=session_id)
    await read(reads.own_session_check)
    subscription = connection.watch(session_id)
    try:
        if command.after is not None and await read(reads.can_replay, after=command.after):
            connection.outbox.put(
                protocol.ok(command.id, {"mode": "replay", "from": command.after})
            )
            subscription.note(await read(reads.last_seq))
            subscription.start(command.after)
            return None
        snapshot = await read(reads.read_snapshot, limit=connection.host.config.snapshot_rows)
    except BaseException:
        connection.unwatch(session_id)
        raise
    connection.outbox.put(protocol.ok(command.id, {"mode": "snapshot"}))
    connection.outbox.put(protocol.control("snapshot", **snapshot))
    subscription.start(snapshot["seq"])
    return None


async def session_unsubscribe(
    connection: Connection, command: protocol.SessionUnsubscribe
) -> Result:
    connection.unwatch(command.session_id)
    return {}


async def session_history(connection: Caller, command: protocol.SessionHistory) -> Result:
    return await connection.host.lanes.read(
        reads.read_history,
        user_id=connection.user_id,
        session_id=command.session_id,
        before=command.before,
        limit=command.limit,
    )


async def session_update(connection: Caller, command: protocol.SessionUpdate) -> Result:
    session, logged = await connection.host.lanes.write(
        writes.change_session,
        user_id=connection.user_id,
        session_id=command.session_id,
        title=command.title,
        pinned=command.pinned,
        archived=command.archived,
        agent=command.agent,
        model=command.model,
    )
    connection.host.hub.publish(logged)
    return {"session": session}


async def session_seen(connection: Connection, command: protocol.SessionSeen) -> Result:
    await connection.host.lanes.write(
        writes.mark_seen,
        user_id=connection.user_id,
        session_id=command.session_id,
        revision=command.revision,
    )
    return {}


async def session_delete(connection: Caller, command: protocol.SessionDelete) -> Result:
    logged = await connection.host.lanes.write(
        writes.delete_own_session, user_id=connection.user_id, session_id=command.session_id
    )
    connection.unwatch(command.session_id)
    connection.host.hub.publish([logged])
    return {}


async def session_restore(connection: Caller, command: protocol.SessionRestore) -> Result:
    session = await connection.host.lanes.write(
        writes.restore_own_session, user_id=connection.user_id, session_id=command.session_id
    )
    return {"session": session}


async def message_send(connection: Caller, command: protocol.MessageSend) -> Result:
    content = content_parts(command.content)
    inbound = _inbound(
        connection,
        command.client_message_id,
        ("send", command.session_id, content, command.agent, command.model),
        content=content,
        when_busy=command.when_busy,
        agent=command.agent,
        model=command.model,
    )
    return _sent(await connection.host.runner.accept(inbound, command.session_id))


async def message_edit(connection: Connection, command: protocol.MessageEdit) -> Result:
    content = content_parts(command.content)
    inbound = _inbound(
        connection,
        command.client_message_id,
        ("edit", command.session_id, command.message_id, content),
        content=content,
        when_busy=command.when_busy,
        edit_of=command.message_id,
    )
    return _sent(await connection.host.runner.accept(inbound, command.session_id))


async def turn_retry(connection: Connection, command: protocol.TurnRetry) -> Result:
    inbound = _inbound(
        connection,
        command.client_message_id,
        ("retry", command.session_id, command.turn_id),
        content=None,
        when_busy=command.when_busy,
        retry_of=command.turn_id,
    )
    return _sent(await connection.host.runner.accept(inbound, command.session_id))


def _inbound(
    connection: Caller, client_message_id: str, body: tuple[object, ...], **fields: Any
) -> Inbound:
    """The message as the gateway takes it; the hash tells a repeat from another body."""
    digest = hashlib.sha256(msgspec.json.encode(body)).hexdigest()
    return Inbound(
        author_id=connection.user_id,
        author_name=connection.user_name,
        client_message_id=client_message_id,
        body_hash=digest,
        **fields,
    )


def _sent(accepted: Accepted) -> Result:
    result: dict[str, Any] = {
        "sessionId": str(accepted.session_id),
        "turnId": str(accepted.turn_id),
        "status": accepted.status,
        "replayed": accepted.replayed,
    }
    if accepted.place is not None:
        result["place"] = accepted.place
    return result


async def branch_select(connection: Connection, command: protocol.BranchSelect) -> Result:
    lanes = connection.host.lanes
    await lanes.read(
        reads.own_session_check, user_id=connection.user_id, session_id=command.session_id
    )
    revision, logged = await lanes.write(
        switch_branch, session_id=command.session_id, message_id=command.message_id
    )
    connection.host.hub.publish([logged])
    return {"revision": revision}


async def turn_stop(connection: Caller, command: protocol.TurnStop) -> Result:
    if command.session_id is None and command.turn_id is None:
        raise FrameError(
            "invalid_frame", say("turn.stop needs a sessionId or a turnId."), command.id
        )
    stopped = await connection.host.lanes.write(
        queues.stop_turn,
        user_id=connection.user_id,
        session_id=command.session_id,
        turn_id=command.turn_id,
        clear_queue=command.clear_queue,
    )
    connection.host.hub.publish(stopped.logged)
    if stopped.running:
        connection.host.runner.order_stop(*stopped.running)
    return {}


async def queue_edit(connection: Connection, command: protocol.QueueEdit) -> Result:
    if command.content is None and command.when_busy is None:
        raise FrameError("invalid_frame", say("queue.edit needs content or whenBusy."), command.id)
    content = None if command.content is None else content_parts(command.content)
    return await _change_queue(
        connection,
        queues.edit_queued,
        command.turn_id,
        content=content,
        when_busy=command.when_busy,
    )


async def queue_remove(connection: Connection, command: protocol.QueueRemove) -> Result:
    return await _change_queue(connection, queues.remove_queued, command.turn_id)


async def _change_queue(
    connection: Connection,
    change: Callable[..., queues.QueueChanged],
    turn_id: UUID,
    **fields: Any,
) -> Result:
    changed = await connection.host.lanes.write(
        change, user_id=connection.user_id, turn_id=turn_id, **fields
    )
    connection.host.hub.publish([changed.logged])
    if changed.stopping:
        connection.host.runner.order_stop(*changed.stopping)
    return {"queue": changed.queue}


COMMANDS: Final[dict[type, Callable[[Connection, Any], Awaitable[Result]]]] = {
    protocol.Hello: hello,
    protocol.ModelList: model_list,
    protocol.SessionCreate: session_create,
    protocol.SessionList: session_list,
    protocol.SessionSubscribe: session_subscribe,
    protocol.SessionUnsubscribe: session_unsubscribe,
    protocol.SessionHistory: session_history,
    protocol.SessionUpdate: session_update,
    protocol.SessionSeen: session_seen,
    protocol.SessionDelete: session_delete,
    protocol.SessionRestore: session_restore,
    protocol.MessageSend: message_send,
    protocol.MessageEdit: message_edit,
    protocol.TurnRetry: turn_retry,
    protocol.BranchSelect: branch_select,
    protocol.TurnStop: turn_stop,
    protocol.QueueEdit: queue_edit,
    protocol.QueueRemove: queue_remove,
}
"""A command that returns None has sent its reply itself."""
