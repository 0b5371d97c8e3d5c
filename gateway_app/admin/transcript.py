"""One page of a transcript for staff: every row of every kind and state, grouped by turn."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from gateway_app.admin import cells, words
from gateway_app.admin import transcript_rows as reads
from gateway_app.admin.parts import PartView, called_tools, plain_text, view_parts
from gateway_app.models import Turn
from gateway_app.selectors.failures import told_failures
from gateway_app.selectors.stored import load_parts
from sessions_app.models import BLOCK, MODEL_KINDS, Message, Session


@dataclass(frozen=True, slots=True)
class RowView:
    """A row with everything that is shown of it."""

    id: UUID
    css: str
    who: str
    kind: SafeString
    position: int
    revision: int
    at: SafeString | str
    state: SafeString | str
    parts: list[PartView]
    sent: list[PartView]
    answer: bool
    notes: list[str]


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn's line. `title` counts the session's turns that began."""

    id: UUID
    title: str
    verdict: SafeString | str
    ribbon: SafeString | str
    facts: list[SafeString | str]
    state: SafeString | str
    error: str
    model: str
    where: SafeString


@dataclass(slots=True)
class Group:
    """Consecutive rows of one turn, or of none."""

    position: int
    turn: TurnView | None = None
    continued: bool = False
    rows: list[RowView] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WaitingView:
    state: SafeString
    who: str
    text: str
    at: SafeString | str


@dataclass(frozen=True, slots=True)
class Page:
    """`earlier` and `later` are cursors; empty at the transcript's ends."""

    groups: list[Group]
    waiting: list[WaitingView]
    earlier: str
    later: str


def _sent_later(message: Message, sent: Sequence[reads.SentRequest]) -> int | None:
    """The revision at which the row was first sent, if it changed after that."""
    if message.state != Message.State.ACTIVE or message.kind not in MODEL_KINDS:
        return None
    # of its own block a request surely holds the person's row; what the run wrote, a later one
    block = message.position // BLOCK - (message.kind == Message.Kind.USER)
    place = bisect_right(sent, block, key=lambda one: one.block)
    if place == len(sent):
        return None
    if message.turn_id is None and message.created_at > sent[place].started_at:
        return None  # somebody put it there later
    revision = sent[place].revision
    return revision if message.revision > revision else None


def _notes(message: Message, sent: Sequence[reads.SentRequest]) -> list[str]:
    notes = []
    before = _sent_later(message, sent)
    if before is not None:
        told = gettext("Changed at revision %(now)s; the agent had sent it at %(before)s")
        notes.append(told % {"now": message.revision, "before": before})
    if message.kind == Message.Kind.ASSISTANT and message.finish in words.FINISHES:
        notes.append(gettext(words.FINISHES[message.finish]))
    if message.feedback:
        notes.append(gettext("Liked") if message.feedback > 0 else gettext("Disliked"))
    return notes


def _who(message: Message, agent_name: str, parts: list[PartView]) -> str:
    if message.author:
        return message.author.get_username()
    if message.kind == Message.Kind.ASSISTANT:
        return agent_name
    if message.kind == Message.Kind.TOOL:
        return next((part.title for part in parts if part.title), gettext("Tool"))
    return gettext("Nobody named") if message.kind in {"user", "operator", "note"} else "Hermes"


def _row(
    message: reads.StoredMessage,
    agent_name: str,
    tool_names: Mapping[str, str],
    sent: Sequence[reads.SentRequest],
) -> RowView:
    parts = view_parts(load_parts(message.parts_text), tool_names)
    return RowView(
        id=message.pk,
        css=f"h-kind-{message.kind} h-state-{message.state}",
        who=_who(message, agent_name, parts),
        kind=cells.mark(words.word_of(words.KINDS, message.kind)),
        position=message.position,
        revision=message.revision,
        at=cells.moment(message.created_at),
        state=""
        if message.state == Message.State.ACTIVE
        else cells.mark(words.word_of(words.MESSAGE_STATES, message.state)),
        parts=parts,
        sent=view_parts(load_parts(message.sent_text or "[]"), tool_names),
        answer=message.kind == Message.Kind.ASSISTANT,
        notes=_notes(message, sent),
    )


def _baseline(turn: Turn) -> str:
    told = {"baseline": turn.baseline, "revision": turn.revision}
    return gettext("baseline %(baseline)s at revision %(revision)s") % told


def _turn(turn: Turn, number: int | None, error: str) -> TurnView:
    """The turn's line: what the guard said, what it took, how it ended.

    `error`: why it failed, left to the notice below where there is one.
    """
    facts: list[SafeString | str] = []
    if turn.input_tokens is not None or turn.output_tokens is not None:
        facts.append(cells.tokens(turn))
    percent = cells.cached_percent(turn.input_tokens, turn.cached_tokens)
    if percent is not None:
        facts.append(cells.value(gettext("%(percent)s %% cached") % {"percent": percent}))
    if turn.cost_usd is not None:
        facts.append(cells.dollars(turn.cost_usd))
    if turn.duration_ms is not None:
        facts.append(cells.milliseconds(turn.duration_ms))
    if turn.verdict != "reuse" and turn.baseline is not None and turn.revision is not None:
        facts.append(cells.value(_baseline(turn)))
    ran = cells.value(gettext("run %(number)s") % {"number": turn.runs}) if turn.runs else ""
    where = [cells.owner(turn.lease_owner) if turn.lease_owner else "", ran]
    return TurnView(
        id=turn.pk,
        title=gettext("Turn %(number)s") % {"number": number} if number else gettext("Turn"),
        verdict=cells.verdict(turn) if turn.verdict else "",
        ribbon=cells.ribbon(turn),
        facts=facts,
        state="" if turn.state == Turn.State.COMPLETED else cells.turn_state(turn),
        error=error,
        model=turn.model,
        where=format_html_join(", ", "{}", [[one] for one in where if one]),
    )


def _group(
    rows: Sequence[tuple[Message, RowView]], turns: dict[UUID, TurnView], begun_before: set[UUID]
) -> list[Group]:
    """Rows in order, a new group wherever the turn changes."""
    groups: list[Group] = []
    seen = set(begun_before)
    last: UUID | None = None
    for message, row in rows:
        if not groups or message.turn_id != last:
            last = message.turn_id
            turn = turns.get(last) if last else None
            groups.append(Group(message.position, turn, continued=last in seen))
            if last:
                seen.add(last)
        groups[-1].rows.append(row)
    return groups


def _rowless(turns: list[Turn], views: dict[UUID, TurnView], shown: set[UUID]) -> list[Group]:
    return [
        Group(turn.block * BLOCK, views[turn.pk])
        for turn in turns
        if turn.block is not None and turn.pk not in shown
    ]


def _waiting(session: Session) -> list[WaitingView]:
    return [
        WaitingView(
            state=cells.turn_state(turn),
            who=turn.author.get_username() if turn.author else "",
            text=plain_text(load_parts(turn.content_text or "[]")),
            at=cells.moment(turn.created_at),
        )
        for turn in reads.read_waiting(session)
    ]


def read_page(session: Session, agent_name: str, *, before: str, after: str) -> Page:
    """The page at a cursor, by default the transcript's end. Raises ValueError for a bad cursor."""
    if after:
        page = reads.read_rows_after(session, reads.parse_cursor(after))
    else:
        page = reads.read_rows_before(session, reads.parse_cursor(before) if before else None)
    turns = reads.read_turns(session, page)
    numbers = reads.number_turns(session, page, turns)
    noticed = {row.turn_id for row in page.rows if row.kind == Message.Kind.NOTICE}
    errors = told_failures(turn for turn in turns if turn.pk not in noticed)
    views = {turn.pk: _turn(turn, numbers.get(turn.pk), errors.get(turn.pk, "")) for turn in turns}
    tool_names: dict[str, str] = {}
    for message in page.rows:
        tool_names |= called_tools(load_parts(message.parts_text))
    sent = reads.read_sent_requests(session, page)
    rows = [(message, _row(message, agent_name, tool_names, sent)) for message in page.rows]
    groups = _group(rows, views, {turn.pk for turn in turns if turn.block == page.floor})
    groups += _rowless(turns, views, {row.turn_id for row in page.rows if row.turn_id})
    groups.sort(key=lambda group: group.position)
    return Page(
        groups=groups,
        waiting=[] if page.has_later else _waiting(session),
        earlier=reads.cursor_of(page.rows[0]) if page.has_earlier and page.rows else "",
        later=reads.cursor_of(page.rows[-1]) if page.has_later and page.rows else "",
    )
