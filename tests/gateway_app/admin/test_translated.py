"""Every page of the admin, and those of accounts, in a language in which each marked text shows.

The language stands in the place of German: it puts every message of a catalogue between « and ».
What a page shows beside those, and beside what its rows hold, was not marked for translation.
"""

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import trans_real

from gateway_app.models import Agent, ApiToken, Turn
from gateway_app.services.agents import save_agent_version
from gateway_app.services.presence import PresenceReport, renew_presence
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
    r"\[[^\[\]]*\]|openai:\S*|agent:main:\S*|web:\d+\S*|\b[\da-f]{64}\b"
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
        return [text for text in words if text not in CODES | OF_DJANGO]


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
        created_by_id=root.pk, fallback_models="openai:b",
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
}


@pytest.mark.parametrize("page", PAGES)
def test_it_marks_every_text_for_translation(
    client: Client, session: Session, agent: Agent, token: ApiToken, page: str
) -> None:
    answer = client.get(PAGES[page](session, agent, token))
    assert answer.status_code == (404 if page == "nothing" else 200)
    assert Texts(answer.content.decode()).unmarked() == []


@pytest.mark.parametrize("name", ["login", "admin:login", "login_link"])
def test_it_marks_every_text_of_the_way_in(client: Client, name: str) -> None:
    client.logout()
    answer = client.get(reverse(name, args=["nobody"] if name == "login_link" else []))
    assert Texts(answer.content.decode()).unmarked() == []


def test_it_notices_what_is_not_marked() -> None:
    html = '<p title="«Close»">«Read «all» of» [Ann] 12 ms</p><p aria-label="Close">Read</p>'
    assert Texts(html).unmarked() == ["Close", "Read"]
