"""Versions of an agent side by side; running conversations move to the current one when told."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from gateway_app.admin.agent_pages import SETTINGS
from gateway_app.admin.word_diff import Piece, compare
from gateway_app.models import Agent, AgentVersion, FrozenPrompt
from gateway_app.services import agents as services
from gateway_app.templatetags.history import told_change
from sessions_app.models import Session
from tests.factories import AgentFactory, SessionFactory, StaffFactory, UserFactory
from tests.gateway_app.admin.conftest import logged_in, page_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(db) -> Agent:
    agent = AgentFactory(name="Analyst", slug="analyst", version__model="openai:gpt-5",
                         version__system_prompt="Count the sheep.\nThen sleep.")  # fmt: skip
    save(agent, "Count the old goats.\nThen sleep.", temperature=0.2)
    return agent


def save(agent: Agent, prompt: str, **fields) -> None:
    values = {"model": "openai:gpt-5", "temperature": None, "max_output_tokens": None, **fields}
    services.save_agent_version(agent=agent, system_prompt=prompt, created_by_id=None, **values)
    agent.refresh_from_db()


def compare_url(agent: Agent, old: int = 1, new: int = 2) -> str:
    return f"/admin/gateway_app/agent/{agent.pk}/compare/{old}/{new}/"


def apply_url(agent: Agent) -> str:
    return f"/admin/gateway_app/agent/{agent.pk}/apply/"


@pytest.mark.parametrize(
    ("old", "new", "pieces"),
    [
        ("same", "same", []),
        ("a b c", "a x c", [("same", "a "), ("out", "b"), ("in", "x"), ("same", " c")]),
        ("red cat", "blue dog", [("out", "red cat"), ("in", "blue dog")]),
        ("", "new", [("in", "new")]),
        ("gone", "", [("out", "gone")]),
        ("a\nb\n", "a\nb\nc\n", [("same", "a\nb\n"), ("in", "c\n")]),
    ],
)
def test_it_compares_word_by_word(old, new, pieces):
    assert compare(old, new) == [Piece(*piece) for piece in pieces]


def test_it_gives_both_texts_back_whatever_changed():
    old = "\n".join(f"line {n} of many words, {n * 7}" for n in range(60))
    new = old.replace("line 7 ", "row 7 ").replace("many", "few", 3) + "\nend"
    pieces = [piece for piece in compare(old, new) if piece.change != "gap"]
    gaps = [piece for piece in compare(old, new) if piece.change == "gap"]
    assert gaps
    before = "".join(piece.text for piece in pieces if piece.change != "in")
    left_out = sum(int(piece.text.replace(",", "")) for piece in gaps)
    assert len(before) + left_out == len(old)
    assert "row" in "".join(piece.text for piece in pieces if piece.change == "in")


def test_it_compares_texts_of_any_length_in_bounded_time():
    old, new = "word " * 200_000, "other " * 200_000
    assert [piece.change for piece in compare(old, new)] == ["out", "in"]


def test_it_shows_what_changed_by_whom_and_when(ops_client, agent):
    html = ops_client.get(compare_url(agent)).content.decode()
    assert '<del class="h-out">sheep</del>' in html
    assert '<ins class="h-in">old goats</ins>' in html
    assert '<ins class="h-in"><bdi>0.2</bdi></ins>' in html
    text = page_of(ops_client.get(compare_url(agent))).text
    for shown in ("Analyst, version 1 to 2", "openai:gpt-5", "unchanged", "Hermes", "the provider"):
        assert shown in text
    same = page_of(ops_client.get(compare_url(agent, 2, 2))).text
    assert "The prompt is the same in both." in same
    assert ops_client.get(compare_url(agent, 1, 9)).status_code == 404


def test_it_compares_all_that_a_version_says():
    record = {"id", "agent", "number", "created_at", "created_by"}
    content = {field.name for field in AgentVersion._meta.concrete_fields} - record
    assert content == {*SETTINGS, "system_prompt"}


def test_it_leads_from_one_change_to_the_next(ops_client, agent):
    for number in (3, 4):
        save(agent, f"Prompt {number}")
    html = ops_client.get(compare_url(agent, 2, 3)).content.decode()
    for old, new in ((1, 2), (3, 4), (2, 4)):
        assert compare_url(agent, old, new) in html
    listed = ops_client.get(f"/admin/gateway_app/agent/{agent.pk}/change/").content.decode()
    found = re.findall(r"compare/(\d)/(\d)/", listed)
    assert found == [("3", "4"), ("2", "3"), ("1", "2")]


def begun(agent: Agent, **fields) -> Session:
    """A conversation that began with version 1."""
    return SessionFactory(
        **{"agent": agent.slug, "agent_version": 1, "prompt_hash": "old", **fields}
    )


def test_it_applies_the_current_version_to_running_conversations_only(ops_client, agent, operator):
    moved = [begun(agent), begun(agent, model="openai:chosen")]
    others = [
        begun(agent, state="ended"), begun(agent, deleted_at=timezone.now()),
        SessionFactory(agent="main", agent_version=1, prompt_hash="old"),
        begun(agent, agent_version=0, prompt_hash=""),
    ]  # fmt: skip
    text = page_of(ops_client.get(apply_url(agent))).text
    assert "2 conversations began with another version." in text
    page = ops_client.post(apply_url(agent), {"version": 2}, follow=True)
    assert "2 conversations have version 2 from their next message on." in page_of(page).text
    prompt = FrozenPrompt.objects.get()
    assert prompt.system_prompt == "Count the old goats.\nThen sleep."
    for session in moved:
        session.refresh_from_db()
        assert (session.agent_version, session.prompt_hash) == (2, prompt.hash)
    assert moved[1].model == "openai:chosen"
    for session in others:
        before = (session.agent_version, session.prompt_hash)
        session.refresh_from_db()
        assert (session.agent_version, session.prompt_hash) == before
    entry = LogEntry.objects.get(user=operator)
    assert told_change(entry) == "Applied version 2. Running conversations that have it now: 2."
    assert "Every running conversation" in page_of(ops_client.get(apply_url(agent))).text


def test_it_moves_many_conversations_in_batches(agent, monkeypatch):
    monkeypatch.setattr(services, "_BATCH", 3)
    for _ in range(7):
        begun(agent)
    assert services.apply_version(agent=agent, number=2) == 7
    assert not services.sessions_behind(agent).exists()
    assert services.apply_version(agent=agent, number=2) == 0


def test_it_applies_no_version_that_was_replaced_meanwhile(ops_client, agent):
    session = begun(agent)
    save(agent, "Newer.")
    page = ops_client.post(apply_url(agent), {"version": 2}, follow=True)
    assert "Version 3 was saved meanwhile." in page_of(page).text
    session.refresh_from_db()
    assert session.agent_version == 1
    assert ops_client.post(apply_url(agent), {"version": "x"}).status_code == 404


def test_it_opens_to_those_who_may(agent):
    session = begun(agent)
    viewer = logged_in(StaffFactory(permissions=["gateway_app.view_agent"]))
    assert viewer.get(compare_url(agent)).status_code == 200
    assert apply_url(agent) not in viewer.get(compare_url(agent)).content.decode()
    for client in (viewer, logged_in(StaffFactory())):
        assert client.get(apply_url(agent)).status_code == 403
        assert client.post(apply_url(agent), {"version": 2}).status_code == 403
    assert logged_in(StaffFactory()).get(compare_url(agent)).status_code == 403
    for person in (session.owner, UserFactory()):
        assert logged_in(person).get(compare_url(agent)).status_code == 302
        assert logged_in(person).post(apply_url(agent), {"version": 2}).status_code == 302
    session.refresh_from_db()
    assert session.agent_version == 1


def test_it_takes_as_many_statements_whatever_the_version(ops_client, agent, statements):
    few = statements(ops_client, compare_url(agent))
    for number in range(3, 40):
        save(agent, f"Prompt {number} " * 50)
    assert statements(ops_client, compare_url(agent, 38, 39)) == few
