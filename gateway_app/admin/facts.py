"""The facts column of the transcript page: the session, its agent, its clock, what it spent."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Q, Sum
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway_app.admin import cells, words
from gateway_app.admin.agent_pages import compare_url
from gateway_app.host import host
from gateway_app.models import Agent, FrozenPrompt, Turn
from sessions_app.models import Session

Fact = tuple[SafeString | str, SafeString | str]


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class Facts:
    agent_name: str
    sections: list[Section]
    prompt: FrozenPrompt | None


def _session(session: Session, state: str) -> Section:
    owner = session.owner.get_username() if session.owner else cells.NOTHING
    facts: list[Fact] = [
        ("State", cells.mark(words.word_of(words.SESSION_STATES, state))),
        ("Owner", cells.value(owner)),
        ("Key", cells.code(session.key)),
        ("Id", cells.code(str(session.pk))),
        ("Began", cells.moment(session.created_at)),
        ("Updated", cells.moment(session.updated_at)),
    ]
    if session.ended_at:
        facts.append(("Ended", cells.moment(session.ended_at)))
    return Section("Session", facts)


def _agent(session: Session, agent: Agent | None, last: Turn | None, *, linked: bool) -> Section:
    name = agent.name if agent else session.agent
    url = reverse("admin:gateway_app_agent_change", args=[agent.pk]) if agent and linked else ""
    facts: list[Fact] = [
        ("Agent", cells.link(url, name) if url else cells.value(name)),
        ("Model", cells.value(session.model or (last.model if last else "") or "the agent's")),
        ("Prompt", _prompt(session, agent if linked else None)),
    ]
    if last and last.context_tokens is not None:
        facts.append(("Context", cells.value(_context(last.model, last.context_tokens))))
    return Section("Agent", facts)


def _prompt(session: Session, agent: Agent | None) -> SafeString | str:
    """The version the session keeps, and what changed: to the newest, or by this one."""
    number = session.agent_version
    if not number:
        return cells.value("not yet fixed")
    version = cells.value(f"version {number}")
    newest = agent.current_version if agent else number
    if agent and number < newest:
        url = compare_url(agent, number, newest)
        return format_html("{}, {}", version, cells.link(url, f"newest is {newest}"))
    if agent and number > 1:
        return format_html(
            "{}, {}", version, cells.link(compare_url(agent, number - 1, number), "diff")
        )
    return version


def _context(model: str, tokens: int) -> str:
    """How full the model's window was at the last request; its size where it is known."""
    provider, _, name = model.partition(":")
    window = host().providers.facts(provider, name).window_tokens if name else None
    if not window:
        return f"{cells.short_count(tokens)} tokens"
    return f"{tokens * 100 // window} % of {cells.short_count(window)}"


def _behind(revision: int, now: int) -> str:
    return f"{revision}, {now - revision} behind" if revision < now else f"{revision}, up to date"


def _clock(session: Session, last: Turn | None, warm: Mapping[str, int]) -> Section:
    """Where the clock stands, and how far behind it each warm agent and the last request are."""
    facts: list[Fact] = [
        ("Revision", cells.value(str(session.revision))),
        ("Last removal", cells.value(str(session.removed_revision))),
        ("Messages", cells.value(str(session.message_count))),
    ]
    for name, baseline in warm.items():
        where = format_html("Baseline, {}", cells.owner(name))
        facts.append((where, cells.value(_behind(baseline, session.revision))))
    if last and last.sent_revision is not None:
        told = _behind(last.sent_revision, session.revision)
        facts.append(("Last request", cells.value(f"revision {told}")))
    if last and last.baseline is not None:
        told = f"{last.baseline} at revision {last.revision}"
        facts.append(("Its baseline", cells.value(told)))
    return Section("Transcript", facts)


def _last_request(session: Session) -> Turn | None:
    sent = Turn.objects.filter(session=session, sent_revision__isnull=False)
    return sent.defer("content").order_by("-generation").first()


def _spent(session: Session) -> Section:
    known = Q(cached_tokens__isnull=False)
    spent = Turn.objects.filter(session=session).aggregate(
        turns=Count("pk"),
        guarded=Count("pk", filter=~Q(verdict__in=["", "new"])),
        warm=Count("pk", filter=Q(verdict="reuse")),
        failed=Count("pk", filter=Q(state="failed")),
        input=Sum("input_tokens"),
        output=Sum("output_tokens"),
        cached=Sum("cached_tokens"),
        comparable=Sum("input_tokens", filter=known),
        cost=Sum("cost_usd"),
    )
    facts: list[Fact] = [("Turns", cells.value(str(spent["turns"])))]
    if spent["guarded"]:
        facts.append(("Warm", cells.value(f"{spent['warm']} of {spent['guarded']}")))
    if spent["failed"]:
        facts.append(("Failed", cells.value(str(spent["failed"]))))
    if spent["input"] is not None:
        facts.append(("Input tokens", cells.value(f"{spent['input']:,}")))
    percent = cells.cached_percent(spent["comparable"], spent["cached"])
    if percent is not None:
        facts.append(("Cached input", cells.value(f"{percent} %")))
    if spent["output"] is not None:
        facts.append(("Output tokens", cells.value(f"{spent['output']:,}")))
    if spent["cost"] is not None:
        facts.append(("Cost", cells.dollars(spent["cost"])))
    return Section("Spent", facts)


def read_facts(session: Session, state: str, warm: Mapping[str, int], *, link_agent: bool) -> Facts:
    """Everything beside the rows. A fact that is not known is left out, never shown as 0.

    `warm` are the baselines that processes tell.
    """
    agent = Agent.objects.filter(slug=session.agent).first()
    last = _last_request(session)
    sections = [
        _session(session, state),
        _agent(session, agent, last, linked=link_agent),
        _clock(session, last, warm),
        _spent(session),
    ]
    return Facts(
        agent_name=agent.name if agent else session.agent,
        sections=sections,
        prompt=FrozenPrompt.objects.filter(hash=session.prompt_hash).first(),
    )
