"""Every page of the admin, and those of accounts, in a language in which each marked text shows.

The language stands in the place of German: it puts every message of a catalogue between « and ».
What a page shows beside those, and beside what its rows hold, was not marked for translation.
"""

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from uuid import UUID

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, override, trans_real

from gateway_app.admin.agents import OWN_TOOLS
from gateway_app.admin.transcript_pages import transcript_url
from gateway_app.models import Agent, ApiToken, Turn
from gateway_app.services.agents import save_agent_version
from gateway_app.services.presence import PresenceReport, renew_presence
from gateway_app.tools.registry import all_tools
from hermes_site.django_words import USER_PAGES
from sessions_app.models import Message, Session
from sessions_app.sentences import notice_part, say
from tests.factories import (
    AgentFactory,
    ApiTokenFactory,
    FrozenPromptFactory,
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    SuperuserFactory,
    TurnFactory,
)

pytestmark = pytest.mark.django_db

SHOWN = ("aria-label", "title", "placeholder", "alt", "data-label")
"""Attributes that people read or hear."""
CODE = {"code", "pre", "script", "style", "textarea", "option", "kbd"}
"""What these hold is as it is in every language, but for the choices of the admin's actions."""
UNITS = re.compile(
    r"\b(Hermes|CSV|JSONL?|Markdown|API|ms|s|min|h|d|k|M|[KM]iB|B|UTC|p50|p95|on|Deutsch|English)\b"
)
DATA = re.compile(
    r"\[[^\[\]]*\]|openai:[^\s»]*|\bcurrent_time\b|agent:main:\S*|web:\d+\S*|\b[\da-f]{64}\b"
    r"|[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}"
)
CODES = {"queue", "stop", "model_timeout"}
"""Columns that an operator reads as they are stored."""
OF_DJANGO = {"Search", "True", "False"}
"""What Django's own pages do not translate: texts of icons."""
MARKED = re.compile("«[^«»]*»")


class Marked(trans_real.DjangoTranslation):
    def gettext(self, message: str) -> str:
        return f"«{message.rpartition(trans_real.CONTEXT_SEPARATOR)[2]}»"

    def ngettext(self, one: str, many: str, count: int) -> str:
        return self.gettext(one if count == 1 else many)


class Lacking(trans_real.DjangoTranslation):
    """Notes what is asked for and in no catalogue."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.asked: set[str] = set()

    def gettext(self, message: str) -> str:
        if message and self._catalog.get(message) is None:
            self.asked.add(message)
        return super().gettext(message)


class Texts(HTMLParser):
    """What a person reads of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self._attributes: list[str] = []
        self._text = ""
        self._within: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self._attributes += [value for name in SHOWN if (value := names.get(name))]
        if tag == "input" and names.get("type") in {"submit", "button"}:
            self._attributes.append(names.get("value") or "")
        if tag in CODE:
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self._text += f"\n{data}"

    def unmarked(self) -> list[str]:
        """A marked text may hold elements, so the page's text is looked at as a whole."""
        rest = [_rest(text) for text in self._attributes] + _rest(self._text).splitlines()
        words = [text.strip() for text in rest if re.search(r"[^\W\d_]{2,}", text)]
        tools = {f"{tool.name}:" for tool in all_tools()}
        return [text for text in words if text not in CODES | OF_DJANGO | tools]


def _rest(text: str) -> str:
    before, text = "", DATA.sub("", text)
    while text != before:  # a marked text may stand in another one
        before, text = text, MARKED.sub("", text)
    return UNITS.sub("", text)


@pytest.fixture
def root() -> User:
    user: User = SuperuserFactory(username="[root]", first_name="[Root]")
    return user


@pytest.fixture
def client(root: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    client = Client(headers={"accept-language": "de"})
    client.force_login(root)
    monkeypatch.setitem(trans_real._translations, "de", Marked("de"))
    yield client
    trans_real.deactivate()


@pytest.fixture
def agent(root: User) -> Agent:
    Agent.objects.all().delete()
    agent: Agent = AgentFactory(
        name="[Analyst]", slug="[analyst]", is_default=True, version__system_prompt="[Count]"
    )
    save_agent_version(
        agent=agent, model="", system_prompt="[Sing]", temperature=0.5, max_output_tokens=9,
        created_by_id=root.pk, fallback_models="openai:b", tools="[gone]\ncurrent_time",
    )  # fmt: skip
    return agent


@pytest.fixture
def session(root: User, agent: Agent) -> Session:
    """One row of every kind and state, turns of every state and verdict."""
    prompt = FrozenPromptFactory(system_prompt="[Sing]")
    session: Session = SessionFactory(
        owner=root, title="[Refund]", agent=agent.slug, agent_version=1, prompt_hash=prompt.hash,
        model="openai:a",
    )  # fmt: skip
    for kind in Message.Kind.values:
        parts = [{"type": "text", "text": f"[{kind}]"}]
        if kind == "notice":
            parts = [notice_part(say("Your message is kept."))]
        if kind == "session_meta":
            parts = [{"type": kind, "tools": [], "model": "[model]", "platform": "[web]"}]
        for state in ("active", "superseded"):
            MessageFactory(session=session, kind=kind, state=state, parts=parts)
    call = {"type": "tool_call", "id": "1", "name": "[add]", "arguments": "{}"}
    result = {"type": "tool_result", "callId": "1", "content": "[3]", "error": True}
    MessageFactory(session=session, kind="assistant", parts=[call], finish="length", feedback=1)
    MessageFactory(session=session, kind="tool", parts=[result])
    verdicts = [("reuse", ""), ("catch_up", ""), ("reload", ""), ("rebuild", "rewritten")]
    for number, state in enumerate(Turn.State.values):
        verdict, reason = verdicts[number % 4]
        fields = {"verdict": verdict, "reason": reason, "worst_verdict": "rebuild"}
        if state == "running":
            fields["lease_owner"] = "web:7:abc"
        if state == "failed":
            fields |= {"error_code": "model_timeout", "error_message": ""}
        if state in {"queued", "held"}:
            content = [{"type": "text", "text": "[x]"}]
            QueuedTurnFactory(session=session, state=state, content=content)
        elif state != "waiting_approval":
            TurnFactory(
                session=session, state=state, block=number + 1, content=[], model="openai:a",
                cost_usd="0.02", created_at=timezone.now(), **fields,
            )  # fmt: skip
    renew_presence(PresenceReport("web:7:abc", 1, 8, 9_000, {}))
    return session


@pytest.fixture
def token(root: User) -> ApiToken:
    token: ApiToken = ApiTokenFactory(user=root, name="[laptop]", prefix="[hermes]")
    return token


Page = Callable[[Session, Agent, ApiToken], str]


def admin(name: str) -> Page:
    return lambda session, agent, token: reverse(f"admin:{name}")


def of(name: str, row: Callable[[Session, Agent, ApiToken], object]) -> Page:
    return lambda *rows: reverse(f"admin:{name}", args=[row(*rows)])


def _session(session: Session, agent: Agent, token: ApiToken) -> object:
    return session.pk


def _agent(session: Session, agent: Agent, token: ApiToken) -> object:
    return agent.pk


def _token(session: Session, agent: Agent, token: ApiToken) -> object:
    return token.pk


def _failed(session: Session, agent: Agent, token: ApiToken) -> object:
    return Turn.objects.get(state="failed").pk


def _version(session: Session, agent: Agent, token: ApiToken) -> object:
    return agent.versions.latest("number").pk


PAGES: dict[str, Page] = {
    "index": admin("index"),
    "board": admin("board"),
    "sessions": admin("sessions_app_session_changelist"),
    "deleted sessions": lambda *_: reverse("admin:sessions_app_session_changelist") + "?is=deleted",
    "session": of("sessions_app_session_change", _session),
    "transcript": of("sessions_app_session_transcript", _session),
    "session's deletion": of("sessions_app_session_delete", _session),
    "session's history": of("sessions_app_session_history", _session),
    "turns": admin("gateway_app_turn_changelist"),
    "turn": of("gateway_app_turn_change", _failed),
    "agents": admin("gateway_app_agent_changelist"),
    "agent": of("gateway_app_agent_change", _agent),
    "new agent": admin("gateway_app_agent_add"),
    "apply": of("gateway_app_agent_apply", _agent),
    "compare": lambda session, agent, token: reverse(
        "admin:gateway_app_agent_compare", args=[agent.pk, 1, 2]
    ),
    "agent's versions": admin("gateway_app_agentversion_changelist"),
    "agent's version": of("gateway_app_agentversion_change", _version),
    "tokens": admin("gateway_app_apitoken_changelist"),
    "token": of("gateway_app_apitoken_change", _token),
    "new token": admin("gateway_app_apitoken_add"),
    "password": lambda *_: reverse("password"),
    "nothing": lambda *_: "/accounts/nothing/",
    "no transcript": lambda *_: transcript_url(UUID(int=1)),
    "no page of the transcript": lambda session, *_: f"{transcript_url(session.pk)}?before=[x]",
}


@pytest.mark.parametrize("page", PAGES)
def test_it_marks_every_text_for_translation(
    client: Client, session: Session, agent: Agent, token: ApiToken, page: str
) -> None:
    answer = client.get(PAGES[page](session, agent, token))
    assert answer.status_code == (404 if page.startswith("no") else 200)
    assert Texts(answer.content.decode()).unmarked() == []
    if answer.status_code == 404 and page != "nothing":
        assert MARKED.fullmatch(answer.context["exception"])


WRONG: list[dict[str, object]] = [
    {},
    {"model": "gpt", "fallback_models": "gpt"},
    {"fallback_models": " ".join(f"openai:{number}" for number in range(6)), "temperature": "x"},
    {"name": "[x]", "temperature": 3, "max_output_tokens": 0, "tools": "[none]"},
    {"name": "[x]", "edited_version": 1},
]


@pytest.mark.parametrize("sent", WRONG)
def test_it_marks_every_text_of_a_form_with_errors(
    client: Client, agent: Agent, sent: dict[str, object]
) -> None:
    answer = client.post(reverse("admin:gateway_app_agent_change", args=[agent.pk]), sent)
    html = answer.content.decode()
    assert "errornote" in html
    assert Texts(html).unmarked() == []


def test_it_marks_what_was_done_to_rows(
    client: Client, session: Session, agent: Agent, token: ApiToken
) -> None:
    other = SessionFactory(title="[Other]", deleted_at=timezone.now())
    restore = {"action": "restore", "_selected_action": [str(other.pk)]}
    client.post(reverse("admin:sessions_app_session_changelist") + "?is=deleted", restore)
    client.post(reverse("admin:gateway_app_apitoken_revoke", args=[token.pk]))
    client.post(reverse("admin:gateway_app_agent_apply", args=[agent.pk]), {"version": 2})
    values = {"name": "[Analyst]", "system_prompt": "[Hum]", "model": "openai:c"}
    client.post(reverse("admin:gateway_app_agent_change", args=[agent.pk]), values)
    running, queued = (Turn.objects.get(state=state) for state in ("running", "queued"))
    for turn in (running, queued):
        client.post(reverse("admin:board"), {"stop": str(turn.pk)})
    done = {
        "sessions_app_session": (other, ["Restored."]),
        "gateway_app_apitoken": (token, ["Revoked."]),
        "gateway_app_agent": (agent, ["Applied version 2.", "Changed"]),
        "gateway_app_turn": (running, ["Stopped."]),
    }
    for name, (row, told) in done.items():
        html = client.get(reverse(f"admin:{name}_history", args=[row.pk])).content.decode()
        assert all(f"«{one}" in html for one in told)
        assert Texts(html).unmarked() == []


def test_it_reads_what_an_earlier_version_noted(client: Client, root: User, agent: Agent) -> None:
    LogEntry.objects.log_actions(root.pk, [agent], CHANGE, "Restored.", single_object=True)
    page = client.get(reverse("admin:gateway_app_agent_history", args=[agent.pk]))
    assert "«Restored.»" in page.content.decode()


def test_it_marks_the_first_line_of_each_tool_that_hermes_brings_along() -> None:
    lines = {tool.description.partition("\n")[0] for tool in all_tools()}
    assert set(OWN_TOOLS) <= lines
    with override("de"):
        assert all(gettext(line) != line for line in OWN_TOOLS)


def test_it_lacks_no_german_on_djangos_pages_for_users(
    client: Client, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Lacking("de")
    monkeypatch.setitem(trans_real._translations, "de", lacking)
    without_password = User.objects.create(username="[none]", password=make_password(None))
    pages = [reverse("admin:auth_user_changelist"), reverse("admin:auth_user_add")]
    for user in (root, without_password):
        pages += [
            reverse(f"admin:{name}", args=[user.pk])
            for name in ("auth_user_change", "auth_user_password_change", "auth_user_delete")
        ]
    for page in pages:
        assert client.get(page).status_code == 200
    assert lacking.asked == set()


def test_it_translates_what_djangos_german_lacks() -> None:
    with override("de"):
        assert [words for words in USER_PAGES if gettext(words) == words] == []


@pytest.mark.parametrize("name", ["login", "admin:login", "login_link"])
def test_it_marks_every_text_of_the_way_in(client: Client, name: str) -> None:
    client.logout()
    answer = client.get(reverse(name, args=["nobody"] if name == "login_link" else []))
    assert Texts(answer.content.decode()).unmarked() == []


def test_it_notices_what_is_not_marked() -> None:
    html = '<p title="«Close»">«Read «all» of» [Ann] 12 ms</p><p aria-label="Close">Read</p>'
    assert Texts(html).unmarked() == ["Close", "Read"]
