"""Text of people, models and tools reaches every admin page as text, and no page needs more than
the strict policy allows."""

import pytest
from django.test import Client

from gateway_app.services.agents import save_agent_version
from gateway_app.services.presence import PresenceReport, renew_presence
from tests.browser.hostile import DIAGRAMS, MARKDOWN, MARKUP, MATHS
from tests.factories import (
    AgentFactory,
    ApiTokenFactory,
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    StaffFactory,
    SuperuserFactory,
    TurnFactory,
    UserFactory,
)
from tests.gateway_app.admin.conftest import logged_in, page_of

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</pre></details><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7|add:7 }}{% debug %}",
    "<style>*{display:none}</style>",
    "<a href='javascript:alert(1)'>x</a>",
)
CORPUS = [
    text.replace("\0", "")[:80].strip()
    for text in (*MARKUP.values(), *MARKDOWN.values(), *MATHS.values(), *DIAGRAMS.values())
]
"""What the chat is tried with, cut to what the shortest name takes."""
BATCHES = [CORPUS[at : at + 20] for at in range(0, len(CORPUS), 20)]

pytestmark = pytest.mark.django_db


@pytest.fixture(params=PAYLOADS)
def hostile(request) -> str:
    return request.param


@pytest.fixture
def pages(hostile) -> list[str]:
    """Every page of ours that shows somebody's text, filled with it."""
    user = SuperuserFactory(username=hostile)
    agent = AgentFactory(name=hostile, slug="hostile", version__system_prompt=hostile,
                         version__model=hostile)  # fmt: skip
    session = SessionFactory(owner=user, title=hostile, key=f"k:{hostile}", agent="hostile",
                             model=hostile)  # fmt: skip
    turn = TurnFactory(
        session=session, content=[{"type": "text", "text": hostile}], state="failed",
        error_message=hostile, error_code=hostile[:32], verdict=hostile[:16],
        reason=hostile[:24], worst_verdict="rebuild", worst_reason=hostile[:24],
        lease_owner=hostile, model=hostile, finish=hostile[:24],
    )  # fmt: skip
    QueuedTurnFactory(session=session, content=[{"type": "text", "text": hostile}])
    parts = [
        {"type": "text", "text": hostile},
        {"type": "reasoning", "text": hostile},
        {"type": "tool_call", "id": "1", "name": hostile, "arguments": hostile},
        {"type": "tool_result", "callId": "1", "content": hostile, "error": hostile},
        {"type": "session_meta", "tools": [hostile], "model": hostile, hostile: hostile},
        {"type": hostile, hostile: hostile},
        hostile,
    ]
    for kind in ("user", "assistant", "tool", "note", "session_meta", "summary"):
        MessageFactory(session=session, kind=kind, parts=parts, sent_parts=parts,
                       turn_id=turn.pk, author=user, finish=hostile[:24])  # fmt: skip
    save_agent_version(agent=agent, model=f"{hostile} 2", system_prompt=f"{hostile} 2",
                       temperature=None, max_output_tokens=None, created_by_id=user.pk)  # fmt: skip
    renew_presence(PresenceReport(f"{hostile[:40]}:1:x", 1, 1, 1))
    token = ApiTokenFactory(user=user, name=hostile, prefix=hostile[:16])
    sessions, gateway = "/admin/sessions_app/session/", "/admin/gateway_app/"
    return [
        sessions,
        f"{sessions}{session.pk}/transcript/",
        f"{sessions}{session.pk}/change/",
        f"{sessions}{session.pk}/delete/",
        f"{gateway}turn/",
        f"{gateway}turn/{turn.pk}/change/",
        f"{gateway}agent/",
        f"{gateway}agent/{agent.pk}/change/",
        f"{gateway}agent/{agent.pk}/compare/1/2/",
        f"{gateway}agent/{agent.pk}/apply/",
        "/admin/board/",
        f"{gateway}agentversion/",
        f"{gateway}agentversion/{agent.versions.get(number=1).pk}/change/",
        f"{gateway}apitoken/",
        f"{gateway}apitoken/{token.pk}/change/",
    ]


def test_it_shows_hostile_text_as_text_on_every_page(root_client, pages, hostile):
    for url in pages:
        page = page_of(root_client.get(url))
        assert page.refused == [], url
        assert hostile in page.text, url


@pytest.mark.parametrize("batch", BATCHES, ids=range(len(BATCHES)))
def test_it_shows_the_whole_corpus_as_names_and_as_words(root_client, batch):
    """Names in the lists; the words of a transcript, a prompt and its changes."""
    talk, agent = SessionFactory(), AgentFactory(version__system_prompt="\n".join(batch))
    save_agent_version(agent=agent, model="m", system_prompt="\n".join(reversed(batch)),
                       temperature=None, max_output_tokens=None, created_by_id=None)  # fmt: skip
    for at, text in enumerate(batch):
        user = UserFactory(username=f"{at}{text}")
        AgentFactory(name=text, slug=f"hostile-{at}")
        session = SessionFactory(owner=user, title=text, agent=f"hostile-{at}", model=text)
        TurnFactory(session=session, model=text, state="failed", error_message=text)
        for one in (session, talk):
            QueuedTurnFactory(session=one, content=[{"type": "text", "text": text}])
        ApiTokenFactory(user=user, name=text)
        parts = [{"type": kind, "text": text} for kind in ("text", "reasoning")]
        call = {"type": "tool_call", "id": f"{at}", "name": text, "arguments": text}
        MessageFactory(session=talk, kind="assistant", parts=[*parts, call], author=user)
    sessions, gateway = "/admin/sessions_app/session/", "/admin/gateway_app/"
    for url in (sessions, f"{sessions}{talk.pk}/transcript/", f"{gateway}turn/", f"{gateway}agent/",
                f"{gateway}agent/{agent.pk}/change/", f"{gateway}agent/{agent.pk}/compare/1/2/",
                f"{gateway}apitoken/", "/admin/board/", "/admin/auth/user/"):  # fmt: skip
        page = page_of(root_client.get(url))
        assert page.refused == [], url
        if "/compare/" not in url:  # what differs is shown in pieces
            assert [text for text in batch if text not in page.text] == [], url


def test_it_shows_hostile_text_in_the_confirmation_of_deleting_many(root_client, hostile):
    session = SessionFactory(title=hostile)
    data = {"action": "delete_selected", "_selected_action": [str(session.pk)]}
    page = page_of(root_client.post("/admin/sessions_app/session/", data))
    assert hostile in page.text
    assert page.refused == []


def test_it_shows_hostile_text_beside_a_new_token(root_client, hostile):
    user = SuperuserFactory(username=hostile)
    sent = {"name": hostile, "user": user.pk}
    page = page_of(root_client.post("/admin/gateway_app/apitoken/add/", sent))
    assert hostile in page.text
    assert page.refused == []


@pytest.mark.parametrize(
    "url",
    [
        "/admin/", "/admin/sessions_app/", "/admin/auth/user/", "/admin/auth/user/add/",
        "/admin/auth/group/", "/admin/auth/group/add/", "/admin/password_change/",
        "/admin/gateway_app/agent/add/", "/admin/gateway_app/apitoken/add/",
        "/admin/sessions_app/session/?q=winter&is=idle", "/admin/gateway_app/turn/?verdict=reuse",
        "/admin/nothing/of/the/kind/",
    ],
)  # fmt: skip
def test_it_serves_stock_pages_that_the_strict_policy_accepts(root_client, url):
    response = root_client.get(url)
    assert "script-src 'self'" in response.headers["Content-Security-Policy"]
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    if response.status_code == 200:
        assert page_of(response).refused == []


def test_it_logs_in_on_a_page_that_the_strict_policy_accepts():
    page = page_of(Client().get("/admin/login/"))
    assert page.refused == []
    assert "Hermes administration" in page.text


def test_it_keeps_an_action_bar_on_where_nobody_may_act():
    viewer = StaffFactory(permissions=["gateway_app.view_turn", "sessions_app.view_session"])
    client, turn = logged_in(viewer), TurnFactory()
    for url in ("/admin/gateway_app/turn/", "/admin/sessions_app/session/"):
        response = client.get(url)
        assert turn.session.title in page_of(response).text
        assert page_of(response).refused == []


def test_it_bears_the_products_name_and_mark(root_client):
    html = root_client.get("/admin/").content.decode()
    assert "Hermes administration" in html
    assert 'class="h-brand-mark"' in html
    assert "gateway_app/css/tokens.css" in html


def test_it_lets_no_script_make_markup_on_our_own_pages(root_client):
    agent, session = AgentFactory(), SessionFactory()
    for url in (
        "/admin/board/", "/admin/board/live/", f"/admin/gateway_app/agent/{agent.pk}/apply/",
        f"/admin/gateway_app/agent/{agent.pk}/compare/1/1/",
        f"/admin/sessions_app/session/{session.pk}/transcript/",
    ):  # fmt: skip
        policy = root_client.get(url).headers["Content-Security-Policy"]
        assert "require-trusted-types-for 'script'" in policy, url
