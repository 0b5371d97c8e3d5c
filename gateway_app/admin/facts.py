"""The facts column of the transcript page: the session, its agent, its clock, what it spent."""

from dataclasses import dataclass

from django.db.models import Count, Q, Sum
from django.urls import reverse
from django.utils.safestring import SafeString

from gateway_app.admin import cells, words
from gateway_app.models import Agent, FrozenPrompt, Turn
from sessions_app.models import Session

Fact = tuple[str, SafeString | str]


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


def _agent(session: Session, agent: Agent | None, *, linked: bool) -> Section:
    name = agent.name if agent else session.agent
    url = reverse("admin:gateway_app_agent_change", args=[agent.pk]) if agent and linked else ""
    version = f"version {session.agent_version}" if session.agent_version else "not yet fixed"
    return Section(
        "Agent",
        [
            ("Agent", cells.link(url, name) if url else cells.value(name)),
            ("Prompt", cells.value(version)),
            ("Model", cells.value(session.model or "the agent's")),
        ],
    )


def _clock(session: Session) -> Section:
    """The last guard's baseline beside the revision that it met, and how far the clock is now."""
    last = (
        Turn.objects.filter(session=session, sent_revision__isnull=False)
        .defer("content")
        .order_by("-generation")
        .first()
    )
    facts: list[Fact] = [
        ("Revision", cells.value(str(session.revision))),
        ("Last removal", cells.value(str(session.removed_revision))),
        ("Messages", cells.value(str(session.message_count))),
    ]
    if last and last.sent_revision is not None:
        behind = session.revision - last.sent_revision
        told = f"revision {last.sent_revision}, {behind} behind"
        facts.append(("Last request", cells.value(told)))
    if last and last.baseline is not None:
        told = f"{last.baseline} at revision {last.revision}"
        facts.append(("Its baseline", cells.value(told)))
    return Section("Transcript", facts)


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


def read_facts(session: Session, state: str, *, link_agent: bool) -> Facts:
    """Everything beside the rows. A fact that is not known is left out, never shown as 0."""
    agent = Agent.objects.filter(slug=session.agent).first()
    sections = [
        _session(session, state),
        _agent(session, agent, linked=link_agent),
        _clock(session),
        _spent(session),
    ]
    return Facts(
        agent_name=agent.name if agent else session.agent,
        sections=sections,
        prompt=FrozenPrompt.objects.filter(hash=session.prompt_hash).first(),
    )
