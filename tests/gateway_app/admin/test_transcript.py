"""The transcript page: every kind and state, grouped by turn, paged by key, read-only."""

import re
from decimal import Decimal

import pytest
from django.test import Client

from sessions_app.models import BLOCK, Message, Session
from tests.factories import (
    FrozenPromptFactory,
    MessageFactory,
    QueuedTurnFactory,
    StaffFactory,
)
from tests.gateway_app.admin.conftest import logged_in, page_of
from tests.gateway_app.admin.transcripts import begun, shown_rows, url_of

pytestmark = pytest.mark.django_db


KINDS = {
    "user": "User",
    "assistant": "Assistant",
    "operator": "Operator, a person",
    "system": "System",
    "notice": "Notice",
    "summary": "Summary",
    "note": "Private note",
}


def test_it_shows_every_kind_of_row_by_name(ops_client, session):
    for kind in KINDS:
        MessageFactory(session=session, kind=kind, text=f"text of {kind}")
    page = page_of(ops_client.get(url_of(session)))
    for kind, word in KINDS.items():
        assert f"text of {kind}" in page.text
        assert word in page.text


def test_it_shows_the_facts_of_the_first_turn(ops_client, session):
    tools = [{"name": "order_lookup", "parameters": {}}, "send_refund"]
    part = {"type": "session_meta", "tools": tools, "model": "openai:gpt-5", "platform": "web"}
    MessageFactory(session=session, kind="session_meta", parts=[part])
    page = page_of(ops_client.get(url_of(session)))
    for shown in ("Session facts", "order_lookup, send_refund", "openai:gpt-5", "Platform"):
        assert shown in page.text


def test_it_shows_every_state_but_the_usual_one_by_icon_and_word(ops_client, session):
    states = {
        "compacted": ("Compacted", "fold-vertical"),
        "superseded": ("Superseded", "replace"),
        "branched": ("Branched", "git-branch"),
        "hidden": ("Hidden", "eye-off"),
    }
    for state in states:
        MessageFactory(session=session, state=state, text=f"text of {state}")
    html = ops_client.get(url_of(session)).content.decode()
    for state, (word, icon) in states.items():
        assert f"text of {state}" in html
        assert f'<use href="#i-{icon}"></use></svg>{word}</span>' in html
        assert f'<symbol id="i-{icon}"' in html


def test_it_shows_a_tool_call_with_its_result_under_the_tools_name(ops_client, session):
    call = {"type": "tool_call", "id": "c1", "name": "order_lookup", "arguments": '{"order":2291}'}
    result = {"type": "tool_result", "callId": "c1", "content": "delivered"}
    failed = {"type": "tool_result", "callId": "c1", "content": "no such order", "error": True}
    thought = {"type": "reasoning", "text": "Look it up."}
    MessageFactory(session=session, kind="assistant", parts=[thought, call])
    MessageFactory(session=session, kind="tool", parts=[result])
    MessageFactory(session=session, kind="tool", parts=[failed])
    unknown = failed | {"content": "It may have run.", "error": "unknown"}
    MessageFactory(session=session, kind="tool", parts=[unknown])
    page = page_of(ops_client.get(url_of(session)))
    assert page.text.count("order_lookup") == 4
    shown = ('{"order":2291}', "delivered", "The tool failed", "no such order", "Look it up.")
    for text in (*shown, "Outcome unknown", "It may have run."):
        assert text in page.text


def test_it_shows_what_the_model_was_sent_where_it_differs(ops_client, session):
    sent = [{"type": "text", "text": "[ann] Hello"}]
    MessageFactory(session=session, text="Hello", sent_parts=sent)
    assert "[ann] Hello" in page_of(ops_client.get(url_of(session))).text


def test_it_says_how_an_answer_ended_that_did_not_end_by_itself(ops_client, session):
    MessageFactory(session=session, kind="assistant", text="Half an", finish="stopped")
    MessageFactory(session=session, kind="assistant", text="Whole.", finish="stop")
    MessageFactory(session=session, kind="notice", text="Stopped.", finish="stopped")
    assert page_of(ops_client.get(url_of(session))).text.count("Stopped here") == 1


def test_it_lets_no_script_make_markup_on_the_page(ops_client, session):
    policy = ops_client.get(url_of(session)).headers["Content-Security-Policy"]
    assert "require-trusted-types-for 'script'" in policy
    assert "script-src 'self';" in policy


def test_it_names_position_revision_and_author_of_each_row(ops_client, session, owner):
    MessageFactory(session=session, author=owner)
    row = MessageFactory(session=session, author=owner)
    text = page_of(ops_client.get(url_of(session))).text
    assert f"#{row.position}" in text
    assert f"rev {row.revision}" in text
    assert owner.username in text


def test_it_groups_rows_by_turn_with_its_line(ops_client, session):
    begun(session, 1, rows=2, verdict="new")
    begun(
        session, 2, verdict="rebuild", reason="rewritten", input_tokens=7900, cached_tokens=7426,
        output_tokens=210, cost_usd=Decimal("0.0043"), ttft_ms=412, duration_ms=2840,
        lease_owner="web-1:4:abc", baseline=78, revision=80,
    )  # fmt: skip
    MessageFactory(session=session, kind="operator", text="[row 99]")
    groups = ops_client.get(url_of(session)).content.decode().split('<section class="h-turn"')[1:]
    assert [shown_rows(group) for group in groups] == [[11, 12], [21], [99]]
    assert ["Turn 1" in groups[0], "Turn 2" in groups[1], "Outside a turn" in groups[2]] == [
        True,
        True,
        True,
    ]
    for shown in (
        "Rebuilt", "history edited", "7.9k in, 210 out", "94 % cached", "$0.0043",
        "2.8 s", "baseline 78 at revision 80", 'title="web-1:4:abc">web-1:4</bdi>', "run 1",
        "7426 cached, 474 new, 210 output tokens",
    ):  # fmt: skip
        assert shown in groups[1]


@pytest.mark.parametrize(
    ("verdict", "word"),
    [("reuse", "Warm"), ("catch_up", "Caught up"), ("reload", "Loaded again"), ("new", "New")],
)
def test_it_says_each_verdict_by_its_word(ops_client, session, verdict, word):
    begun(session, 1, verdict=verdict)
    html = ops_client.get(url_of(session)).content.decode()
    assert re.search(rf'<span class="h-verdict">.*{word}</span></span>', html)


def test_it_says_the_worst_later_verdict_of_a_turn(ops_client, session):
    begun(session, 1, verdict="reuse", worst_verdict="rebuild", worst_reason="compacted")
    text = page_of(ops_client.get(url_of(session))).text
    assert re.search(r"Warm\s*then Rebuilt older messages summarised", text)


def test_it_says_why_a_turn_failed_in_words_and_a_sentence(ops_client, session):
    begun(session, 1, state="failed", error_code="model_timeout", error_message="Silent for 60 s.")
    text = page_of(ops_client.get(url_of(session))).text
    for shown in ("Failed", "model too slow", "Silent for 60 s."):
        assert shown in text


def test_it_leaves_out_what_the_provider_did_not_tell(ops_client, session):
    begun(session, 1, input_tokens=None, cached_tokens=None, output_tokens=None, ttft_ms=None)
    html = ops_client.get(url_of(session)).content.decode()
    assert "h-ribbon" not in html
    assert "cached" not in page_of(ops_client.get(url_of(session))).text.lower()
    assert "$0" not in html


def test_it_shows_a_turn_that_left_no_row_between_its_neighbours(ops_client, session):
    begun(session, 1)
    begun(session, 2, rows=0, state="failed", error_message="Never answered.")
    begun(session, 3)
    text = page_of(ops_client.get(url_of(session))).text
    order = [text.index(part) for part in ("[row 11]", "Never answered.", "[row 31]")]
    assert order == sorted(order)
    assert "Turn 3" in text


def test_it_marks_the_second_piece_of_a_turn_that_was_interrupted(ops_client, session):
    turn = begun(session, 1)
    MessageFactory(session=session, position=BLOCK + 2, text="[row 12]")
    MessageFactory(session=session, position=BLOCK + 3, turn_id=turn.pk, text="[row 13]")
    text = page_of(ops_client.get(url_of(session))).text
    assert text.index("[row 12]") < text.index("Turn 1, continued") < text.index("[row 13]")


def test_it_shows_what_waits_for_its_turn(ops_client, session):
    content = [{"type": "text", "text": "And the postage?"}]
    QueuedTurnFactory(session=session, content=content)
    QueuedTurnFactory(session=session, state="held", content=content)
    text = page_of(ops_client.get(url_of(session))).text
    assert text.count("And the postage?") == 2
    assert "Queued" in text
    assert "Held for an operator" in text


def test_it_names_the_sessions_facts(ops_client, session, owner):
    begun(session, 1, verdict="new", sent_revision=1, input_tokens=100, cached_tokens=0)
    begun(session, 2, generation=2, sent_revision=2, baseline=1, revision=2, input_tokens=300,
          cached_tokens=200, cost_usd=Decimal("0.5"))  # fmt: skip
    MessageFactory(session=session)
    prompt = FrozenPromptFactory(system_prompt="You answer in verse.")
    Session.objects.filter(pk=session.pk).update(
        agent_version=7, model="openai:gpt-5", prompt_hash=prompt.hash
    )
    text = page_of(ops_client.get(url_of(session))).text
    facts = re.sub(r"\s+", " ", text)
    for shown in (
        session.key, str(session.pk), "Owner ann", "Agent Assistant", "Prompt version 7",
        "Model openai:gpt-5", "Revision 3", "Messages 3", "Last request revision 2, 1 behind",
        "Its baseline 1 at revision 2", "Turns 2", "Warm 1 of 1", "Input tokens 400",
        "Cached input 50 %", "Cost $0.50", "You answer in verse.",
    ):  # fmt: skip
        assert re.sub(r"\s+", "", shown) in re.sub(r"\s+", "", facts), shown


def test_it_says_that_an_empty_transcript_is_empty(ops_client, session):
    assert "Nothing was written here yet." in page_of(ops_client.get(url_of(session))).text


def test_it_takes_as_many_statements_for_200_rows_as_for_2(ops_client, session, statements):
    begun(session, 1, rows=1)
    begun(session, 2, rows=1)
    counts = [statements(ops_client, url_of(session))]
    for block in range(3, 101):
        begun(session, block, rows=2, author=StaffFactory())
        Message.objects.filter(turn_id__isnull=False, author=None).update(author=StaffFactory())
    assert Message.objects.count() > 190
    counts.append(statements(ops_client, url_of(session)))
    # web session, user, two permission reads, the session; agent, last request,
    # processes, spent, prompt; rows, turns, turn count, requests, queue
    assert counts == [15, 15]


def test_it_changes_nothing_by_being_read(ops_client, session):
    begun(session, 1)
    before = Session.objects.filter(pk=session.pk).values().get()
    page_of(ops_client.get(url_of(session)))
    assert Session.objects.filter(pk=session.pk).values().get() == before
    assert ops_client.post(url_of(session)).status_code == 405
    assert Session.objects.filter(pk=session.pk).values().get() == before


def test_it_needs_the_permission_to_view_sessions(session, owner):
    turns_only = StaffFactory(permissions=["gateway_app.view_turn"])
    assert logged_in(turns_only).get(url_of(session)).status_code == 403
    assert logged_in(owner).get(url_of(session)).status_code == 302
    assert Client().get(url_of(session)).status_code == 302


def test_it_notes_who_read_it_and_nothing_of_what(ops_client, operator, session, caplog):
    MessageFactory(session=session, text="a secret")
    with caplog.at_level("INFO", logger="gateway_app.admin.transcript_pages"):
        ops_client.get(url_of(session))
    [record] = caplog.records
    assert (record.session, record.user) == (str(session.pk), operator.pk)
    assert "secret" not in str(vars(record))
