"""A session's event log as it is stored and as it was sent, for tests."""

import json
from uuid import UUID

from asgiref.sync import sync_to_async

from gateway_app.event_store import fold_run, read_events
from tests.ag_ui_verifier import Json, verify_frames
from tests.socket_client import SocketClient


def stored_frames(session_id: str) -> list[Json]:
    """Every stored event as the frame that a client would get."""
    frames: list[Json] = []
    for logged in read_events(UUID(session_id), from_seq=1, limit_rows=10_000):
        frame: Json = {
            "sessionId": session_id,
            "seq": logged.seq,
            "prev": frames[-1]["seq"] if frames else 0,
            "event": json.loads(logged.event),
        }
        if logged.turn_id is not None:
            frame["turnId"] = str(logged.turn_id)
        frames.append(frame)
    return frames


read_log = sync_to_async(stored_frames)


@sync_to_async
def fold(session_id: str, *turn_ids: str) -> int:
    """Folds the turns' log now; how many events it lost."""
    before = len(stored_frames(session_id))
    for turn_id in turn_ids:
        fold_run(UUID(session_id), UUID(turn_id))
    return before - len(stored_frames(session_id))


async def verify_log(session_id: str) -> list[str]:
    """The stored log is valid AG-UI in a valid order; its runs, oldest first."""
    return verify_frames(await read_log(session_id))


async def verified(client: SocketClient, session_id: str) -> list[Json]:
    """The session's frames, after everything that must hold of them has been checked.

    They are valid in a valid order, and so is the stored log, also once it is folded.
    """
    frames = client.events(session_id)
    runs = verify_frames(frames)
    assert runs
    assert await verify_log(session_id) == runs
    assert {frame["event"].get("threadId", session_id) for frame in frames} == {session_id}
    await fold(session_id, *{run.split(".")[0] for run in runs})
    assert await verify_log(session_id) == runs
    return frames


def kinds(frames: list[Json], turn_id: str | None = None) -> list[str]:
    """The types of the events, with those of ours by their name; repeats are one."""
    found: list[str] = []
    for frame in frames:
        if turn_id in (None, frame.get("turnId")):
            event = frame["event"]
            kind = event["name"] if event["type"] == "CUSTOM" else event["type"]
            if found[-1:] != [kind]:
                found.append(kind)
    return found


def answer_of(*deltas: Json) -> list[bytes]:
    """The bytes of a model's whole answer in these deltas, a write each."""
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
