"""What a change of branch brings back, and which rows are alternatives. On both databases."""

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from sessions_app import services
from sessions_app.branches import read_branches
from sessions_app.models import BLOCK, Message, Session
from tests.factories import MessageFactory, SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)

Turn = UUID


class Transcript:
    """A session whose rows are written in short: `say("U2", turn, on="A1")`."""

    def __init__(self) -> None:
        self.session: Session = SessionFactory()
        self.ids: dict[str, UUID] = {}

    def say(self, name: str, turn: Turn | None = None, on: str | None = None) -> None:
        """One more row in a block of its own, or in that of its turn."""
        rows = Message.objects.filter(session=self.session)
        last = rows.filter(turn_id=turn).order_by("position").last() if turn else None
        end = rows.order_by("position").last()
        block = (end.position // BLOCK + 1 if end else 1) * BLOCK
        row = MessageFactory(
            session=self.session,
            kind="assistant" if name.startswith("A") else "user",
            parts=[{"type": "text", "text": name}],
            position=last.position + 1 if last else block + 1,
            parent_id=self.ids[on] if on else None,
            turn_id=turn,
        )
        self.ids[name] = row.pk

    def fork(self, name: str) -> None:
        """This row and all that follows it make room."""
        position = Message.objects.get(pk=self.ids[name]).position
        services.branch_from(session_id=self.session.pk, position=position)

    def select(self, name: str) -> int:
        """From which position the transcript differs."""
        _, position = services.select_branch(session_id=self.session.pk, message_id=self.ids[name])
        return position

    def hide(self, name: str) -> None:
        services.set_message_state(
            session_id=self.session.pk, message_ids=[self.ids[name]], state="hidden"
        )

    def shown(self) -> list[str]:
        rows = Message.objects.filter(session=self.session, state="active").order_by("position")
        return [row.parts[0]["text"] for row in rows]

    def branches(self) -> dict[str, list[str]]:
        names = {pk: name for name, pk in self.ids.items()}
        found = read_branches(self.session.pk, Message.objects.filter(session=self.session))
        return {names[pk]: [names[one] for one in ids] for pk, ids in found.items()}


@pytest.fixture
def transcript() -> Transcript:
    return Transcript()


@pytest.fixture
def turns() -> list[Turn]:
    return [uuid4() for _ in range(6)]


def test_it_brings_an_answer_back_with_what_others_wrote_while_it_came(
    transcript: Transcript, turns: list[Turn]
) -> None:
    transcript.say("U1", turns[0])
    transcript.say("A1", turns[0], on="U1")
    transcript.say("U2", turns[1], on="A1")
    transcript.say("F", on="U2")  # before the answer was stored
    transcript.say("A2", turns[1], on="U2")
    transcript.say("U3", turns[2], on="F")
    before = transcript.shown()
    assert before == ["U1", "A1", "U2", "A2", "F", "U3"]
    transcript.fork("U1")
    transcript.say("V1", turns[3])
    transcript.say("B1", turns[3], on="V1")
    assert transcript.shown() == ["V1", "B1"]
    transcript.select("U1")
    assert transcript.shown() == before
    transcript.select("B1")
    transcript.select("A2")  # one in the middle brings the whole of its branch
    assert transcript.shown() == before


def test_it_brings_back_what_a_raw_writer_hung_on_nothing(
    transcript: Transcript, turns: list[Turn]
) -> None:
    transcript.say("U1", turns[0])
    transcript.say("A1", turns[0], on="U1")
    transcript.say("raw")
    transcript.say("U2", turns[1], on="raw")
    before = transcript.shown()
    transcript.fork("U1")
    transcript.say("V1", turns[2])
    transcript.select("A1")
    assert transcript.shown() == before


def test_it_leaves_what_stands_before_the_fork_though_a_row_between_is_hidden(
    transcript: Transcript, turns: list[Turn]
) -> None:
    transcript.say("U1", turns[0])
    transcript.say("A1", turns[0], on="U1")
    transcript.say("U2", turns[1], on="A1")
    transcript.say("A2", turns[1], on="U2")
    transcript.hide("A1")
    transcript.fork("U2")
    transcript.say("V2", turns[2], on="A1")
    transcript.select("A2")
    assert transcript.shown() == ["U1", "U2", "A2"]


def test_it_shows_one_branch_though_the_row_that_they_hang_on_was_deleted(
    transcript: Transcript, turns: list[Turn]
) -> None:
    transcript.say("U1", turns[0])
    transcript.say("A1", turns[0], on="U1")
    transcript.say("U2", turns[1], on="A1")
    transcript.say("A2", turns[1], on="U2")
    transcript.fork("U2")
    transcript.say("V2", turns[2], on="A1")
    transcript.say("B2", turns[2], on="V2")
    Message.objects.filter(pk=transcript.ids["A1"]).delete()
    assert transcript.branches() == {"U2": ["U2", "V2"], "V2": ["U2", "V2"]}
    transcript.select("U2")
    assert transcript.shown() == ["U1", "U2", "A2"]
    transcript.select("V2")
    assert transcript.shown() == ["U1", "V2", "B2"]


def test_it_shows_one_of_many_answers_and_the_newest_below_another_message(
    transcript: Transcript, turns: list[Turn]
) -> None:
    transcript.say("U1", turns[0])
    for number, turn in enumerate(turns[:3]):
        if number:
            transcript.fork(f"A{number}")
        transcript.say(f"A{number + 1}", turn, on="U1")
    transcript.select("A2")
    assert transcript.shown() == ["U1", "A2"]
    transcript.fork("U1")
    transcript.say("V1", turns[4])
    assert transcript.shown() == ["V1"]
    transcript.select("U1")
    assert transcript.shown() == ["U1", "A3"]


def test_it_tells_from_where_the_transcript_differs(
    transcript: Transcript, turns: list[Turn]
) -> None:
    transcript.say("U1", turns[0])
    transcript.say("A1", turns[0], on="U1")
    transcript.say("U2", turns[1], on="A1")
    first = Message.objects.get(pk=transcript.ids["A1"]).position
    transcript.fork("A1")
    transcript.say("A1b", turns[2], on="U1")
    assert transcript.select("U2") == first


def test_it_tells_the_branches_of_messages_and_answers_but_no_row_of_others(
    transcript: Transcript, turns: list[Turn]
) -> None:
    transcript.say("U1", turns[0])
    transcript.say("A1", turns[0], on="U1")
    transcript.say("F", on="U1")
    assert transcript.branches() == {}
    transcript.fork("A1")
    transcript.say("A2", turns[1], on="U1")
    transcript.fork("U1")
    transcript.say("V1", turns[2])
    assert transcript.branches() == {
        "U1": ["U1", "V1"], "V1": ["U1", "V1"], "A1": ["A1", "A2"], "A2": ["A1", "A2"],
    }  # fmt: skip


def test_it_asks_once_however_many_rows_there_are(
    transcript: Transcript,
    turns: list[Turn],
    django_assert_num_queries: Callable[..., object],
) -> None:
    for number, turn in enumerate(turns):
        transcript.say(f"U{number}", turn, on=f"U{number - 1}" if number else None)
    rows = list(Message.objects.filter(session=transcript.session))
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        read_branches(transcript.session.pk, rows)
