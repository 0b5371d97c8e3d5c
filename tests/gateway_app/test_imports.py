"""An exported conversation comes back whole as a new one, or not at all."""

import io
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.errors import ImportRefused
from gateway_app.host import GatewayHost
from gateway_app.housekeeping import find_purgeable_sessions
from gateway_app.models import Turn
from gateway_app.selectors.exports import export_session
from gateway_app.selectors.sessions import read_history
from gateway_app.services import imports
from sessions_app.models import BLOCK, Message, Session, new_id
from tests.factories import MessageFactory, SessionFactory, TurnFactory, UserFactory
from tests.fake_model_server import FakeModelServer, Script
from tests.http_client import HttpClient
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

AT = "2026-01-02T03:04:05.678Z"
HEAD = {"type": "session", "format": "hermes.session", "version": 1, "title": "T",
        "createdAt": AT}  # fmt: skip
SOMEBODY = "01920000-0000-7000-8000-000000000000"


def row(**fields: Any) -> dict[str, Any]:
    return {
        "type": "message", "id": str(new_id()), "position": 1_000_001, "kind": "user",
        "state": "active", "parts": [{"type": "text", "text": "Hi"}], "createdAt": AT,
    } | fields  # fmt: skip


def turn(**fields: Any) -> dict[str, Any]:
    return {"type": "turn", "id": str(new_id()), "state": "completed", "block": 1,
            "createdAt": AT, "finishedAt": AT} | fields  # fmt: skip


def jsonl(*lines: Any) -> bytes:
    return b"".join(
        (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines
    )


def exported(session: Session) -> bytes:
    with export_session(session=session, form="jsonl").file as file:
        return file.read()


def numbered(file: bytes) -> list[Any]:
    """The lines with ids counted in the order in which they come."""
    ids: dict[str, int] = {}
    lines = [json.loads(line) for line in file.splitlines()]
    for line in lines:
        for name in ("id", "parentId", "turnId", "retryOf"):
            if name in line:
                line[name] = ids.setdefault(line[name], len(ids))
    return lines


def imported(file: bytes, user: User) -> Session:
    shape = imports.import_session(file=io.BytesIO(file), user_id=user.pk)
    return Session.objects.get(pk=shape["id"])


@pytest.fixture
def lived() -> Session:
    """Branches, tools, a compacted beginning, an operator, odd text: whatever an export holds."""
    session = SessionFactory(title="A life", pinned=True, archived=True, model="openai:gpt-test")
    one = TurnFactory(
        session=session, block=1, cost_usd="0.00000012", context_tokens=7, cache_write_tokens=5
    )
    two = TurnFactory(
        session=session, block=2, state="failed", error_code="limit", error_message="Enough.",
        retry_of=one.pk, input_tokens=None, cached_tokens=None,
    )  # fmt: skip
    call = {"type": "tool_call", "id": "1", "name": "read", "arguments": "{}"}
    result = {"type": "tool_result", "callId": "1", "content": "\x00\ud800 done"}

    def add(position: int, **fields: Any) -> Message:
        made: Message = MessageFactory(session=session, position=position, **fields)
        return made

    asked = add(BLOCK + 1, author=session.owner, turn_id=one.pk, state="compacted")
    add(BLOCK + 2, kind="assistant", parts=[call], turn_id=one.pk, state="compacted", parent=asked)
    add(BLOCK + 3, kind="tool", parts=[result], turn_id=one.pk, state="compacted")
    add(BLOCK + 3, kind="summary", text="They read.")
    old = add(2 * BLOCK + 1, kind="assistant", text="Old", state="branched", finish="stop",
              parent=asked, feedback=-1)  # fmt: skip
    add(2 * BLOCK + 2, kind="assistant", text="Cut", state="superseded", parent=old)
    add(3 * BLOCK + 1, kind="assistant", text="New", turn_id=two.pk, finish="error", parent=asked)
    add(4 * BLOCK + 1, kind="operator", text="I am here.")
    add(5 * BLOCK + 1, kind="notice", text="\ud83d\ude00 \ud800 \x00 1e22")
    return session


def test_it_comes_back_as_it_was(lived: Session) -> None:
    """Case H3: exported, imported, exported again, it is equal."""
    file = exported(lived)
    copy = imported(file, lived.owner)
    assert copy.pk != lived.pk and copy.key != lived.key
    assert numbered(exported(copy)) == numbered(file)
    pages = [
        read_history(user_id=one.owner_id, session_id=one.pk, before=None, limit=50)
        for one in (lived, copy)
    ]
    words = [[(row["kind"], row["state"], row["parts"]) for row in page["messages"]]
             for page in pages]  # fmt: skip
    assert words[0] == words[1] and len(words[0]) == 9


def test_it_believes_no_file_who_wrote(lived: Session) -> None:
    bob = UserFactory(username="bob")
    line = row(kind="operator", author=lived.owner.get_username(), position=9 * BLOCK + 1)
    copy = imported(exported(lived) + jsonl(line), bob)
    assert copy.owner == bob
    authors = copy.messages.order_by("position").values_list("kind", "author_id")
    assert set(authors) == {("user", bob.pk), *((kind, None) for kind, _ in authors[1:])}
    assert set(copy.turns.values_list("author", "client_message_id")) == {(None, None)}


def test_it_keeps_its_hands_off_rows_that_exist(lived: Session) -> None:
    before = exported(lived)
    mine = str(lived.messages.order_by("position").first().pk)  # type: ignore[union-attr]
    file = jsonl(HEAD, row(id=mine), row(parentId=SOMEBODY, position=2_000_001, turnId=SOMEBODY))
    copy = imported(file, UserFactory())
    assert exported(lived) == before
    assert not copy.messages.filter(pk=mine).exists()
    assert set(copy.messages.values_list("parent_id", "turn_id")) == {(None, None)}


REFUSED: list[tuple[str, bytes, int]] = [
    ("nothing", b"", 1),
    ("no session", jsonl(row()), 1),
    ("another format", jsonl(HEAD | {"format": "x"}), 1),
    ("a later version", jsonl(HEAD | {"version": 2}), 1),
    ("no JSON", jsonl(HEAD, b"{"), 2),
    ("a list", jsonl(HEAD, []), 2),
    ("a kind of line that is none", jsonl(HEAD, {"type": "note"}), 2),
    ("not UTF-8", jsonl(HEAD, b"\xff"), 2),
    ("deep", jsonl(HEAD, b"[" * 100_000), 2),
    ("a long number", jsonl(HEAD, b"1" * 5000), 2),
    ("NaN", jsonl(HEAD, b'{"type": "message", "position": NaN}'), 2),
    ("two sessions", jsonl(HEAD, HEAD), 2),
    ("a turn after a row", jsonl(HEAD, row(), turn()), 3),
    ("a row twice", jsonl(HEAD, row(id=SOMEBODY), row(id=SOMEBODY, position=2_000_001)), 3),
    ("a position taken", jsonl(HEAD, row(), row()), 3),
    ("a position before", jsonl(HEAD, row(position=5), row(position=4, state="branched")), 3),
    ("position 0", jsonl(HEAD, row(position=0)), 2),
    ("a huge position", jsonl(HEAD, row(position=2**62)), 2),
    ("a kind for staff", jsonl(HEAD, row(kind="note")), 2),
    ("a kind for the model", jsonl(HEAD, row(kind="system")), 2),
    ("a hidden row", jsonl(HEAD, row(state="hidden")), 2),
    ("no parts", jsonl(HEAD, row(parts="x")), 2),
    ("a part without a type", jsonl(HEAD, row(parts=[{"text": "x"}])), 2),
    ("a call of a person", jsonl(HEAD, row(parts=[{"type": "tool_call", "id": "1", "name": "x",
                                                   "arguments": ""}])), 2),
    ("a result without a call", jsonl(HEAD, row(kind="tool")), 2),
    ("a turn that runs", jsonl(HEAD, turn(state="running")), 2),
    ("a negative count", jsonl(HEAD, turn(usage={"inputTokens": -1})), 2),
    ("an endless cost", jsonl(HEAD, turn(costUsd=1e30)), 2),
    ("NUL in a model", jsonl(HEAD, turn(model="a\x00b")), 2),
    ("a surrogate in an error", jsonl(HEAD, turn(error={"code": "x", "message": "\ud800"})), 2),
    ("a time without a zone", jsonl(HEAD, row(createdAt="2026-01-01T00:00:00")), 2),
    ("a time before time", jsonl(HEAD, row(createdAt="0001-01-01T00:00:00+14:00")), 2),
    ("a time after time", jsonl(HEAD, turn(finishedAt="9999-12-31T23:59:59-14:00")), 2),
]  # fmt: skip


@pytest.mark.parametrize(("what", "file", "line"), REFUSED, ids=[one[0] for one in REFUSED])
def test_it_names_the_line_and_imports_nothing(what: str, file: bytes, line: int) -> None:
    with pytest.raises(ImportRefused, match=f"^Line {line} cannot be imported: "):
        imported(file, UserFactory())
    assert not Session.objects.exists() and not Message.objects.exists()


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"{", "it is not JSON."),
        (b"\xff\xfe", "it is not JSON."),
        (jsonl({"type": "session"}), "format is missing."),
        (jsonl(HEAD | {"pinned": "x"}), "pinned must be true or false, not text."),
    ],
)
def test_it_says_why_in_a_sentence(file: bytes, reason: str) -> None:
    with pytest.raises(ImportRefused, match=f": {reason}$"):
        imported(file, UserFactory())


@pytest.mark.parametrize("value", ["1e999", "9" * 4000, "[" * 800 + "]" * 800, '{"\\u0000": 1}'])
def test_it_keeps_of_a_part_only_what_it_has_checked(value: str) -> None:
    part = f'{{"x": {value}, "type": "text", "text": "Hi"}}'
    line = json.dumps(row(parts="PARTS")).replace('"PARTS"', f"[{part}]").encode()
    [message] = imported(jsonl(HEAD, line), UserFactory()).messages.all()
    assert message.parts == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize("error", [True, "unknown"])
def test_it_keeps_that_a_tool_failed(error: object) -> None:
    part = {"type": "tool_result", "callId": "1", "content": "no", "error": error}
    parts = [part | {"durationMs": 3}]
    [message] = imported(jsonl(HEAD, row(kind="tool", parts=parts)), UserFactory()).messages.all()
    assert message.parts == parts


def test_it_takes_an_unknown_agent_for_the_default_one() -> None:
    head = HEAD | {"agent": "theirs", "model": "nonsense", "title": "a\nb\ud800\x00" + "c" * 300}
    with pytest.raises(ImportRefused, match="Line 1"):
        imported(jsonl(head), UserFactory())
    copy = imported(jsonl(head | {"title": "a\nb\ud800\x00"}), UserFactory())
    assert (copy.agent, copy.model, copy.title) == ("main", "", "a b")


def test_it_leaves_files_behind_and_their_names_in_the_text() -> None:
    part = {"type": "attachment", "name": "plan.pdf", "sha256": "0" * 64, "id": SOMEBODY}
    copy = imported(jsonl(HEAD, row(parts=[part])), UserFactory())
    assert copy.messages.get().parts == [{"type": "text", "text": "[plan.pdf]"}]


def test_it_hides_what_is_not_finished_and_purges_it(settings: Any) -> None:
    user = UserFactory()
    found = imports.check_import(io.BytesIO(jsonl(HEAD, row())))
    session_id = imports.begin(found, user.pk)
    for write in imports.batches(found, session_id, user.pk):
        write()
    assert not Session.objects.owned_by(user.pk).exists()
    assert find_purgeable_sessions() == []
    Session.objects.filter(pk=session_id).update(deleted_at="2020-01-01T00:00:00Z")
    assert find_purgeable_sessions() == [session_id]


async def test_it_goes_on_where_it_was_exported(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    model.script(Script(tokens=["Blue."]), Script(tokens=["As I said."]))
    client = HttpClient(owner)
    async with SocketClient(owner) as socket:
        sent = await socket.say("Which colour?")
        await socket.finished(sent["turnId"])
        file = await client.file(f"/sessions/{sent['sessionId']}/export")
        options: Any = {"content_type": "application/x-ndjson"}
        made = await client.ask("POST", "/sessions/import", file, **options)
        assert made.status_code == 201
        session = made.json()["session"]
        assert (session["title"], session["unread"]) == ("Which colour?", False)
        reply = await socket.ok("session.subscribe", sessionId=session["id"], after=0)
        assert reply["mode"] == "replay"
        again = await socket.say("Again?", session["id"])
        await socket.finished(again["turnId"])
        assert next(one["event"].get("name") for one in socket.events(session["id"])) == (
            "hermes.rewritten"
        )
    said = [one["content"] for one in json.loads(model.requests[1].body)["messages"][1:]]
    assert said == ["Which colour?", "Blue.", "Again?"]
    assert await client.file(f"/sessions/{session['id']}/export") != file


async def test_it_refuses_a_bad_file_over_http_and_keeps_nothing(
    gateway: GatewayHost, owner: User
) -> None:
    client = HttpClient(owner)
    options: Any = {"content_type": "application/x-ndjson"}
    file = jsonl(HEAD, *(row(position=place * BLOCK + 1) for place in range(1, 500)), b"{")
    error = await client.refused("POST", "/sessions/import", file, **options)
    assert (error["status"], error["code"]) == (422, "invalid_frame")
    assert error["message"].startswith("Line 501 ")
    assert await Session.objects.acount() == 0
    error = await client.refused("POST", "/sessions/import", {"a": 1})
    assert error["status"] == 415
    assert await Session.objects.acount() == 0


async def test_it_limits_the_size_of_a_file(gateway: GatewayHost, owner: User) -> None:
    object.__setattr__(gateway.config, "import_bytes", 1000)
    options: Any = {"content_type": "application/x-ndjson"}
    file = jsonl(HEAD) + b" " * 1000
    error = await HttpClient(owner).refused("POST", "/sessions/import", file, **options)
    assert (error["status"], error["code"]) == (413, "too_large")


async def test_it_imports_long_conversations_in_short_writes(
    gateway: GatewayHost, owner: User
) -> None:
    file = jsonl(HEAD, *(row(position=place * BLOCK + 1) for place in range(1, 1001)))
    options: Any = {"content_type": "application/x-ndjson"}
    made = await HttpClient(owner).ask("POST", "/sessions/import", file, **options)
    session_id = made.json()["session"]["id"]
    assert await Message.objects.filter(session_id=session_id).acount() == 1000
    session = await Session.objects.aget(pk=session_id)
    assert (session.message_count, session.next_block) == (1000, 1001)
    assert await sync_to_async(exported)(session)
    assert await Turn.objects.acount() == 0
