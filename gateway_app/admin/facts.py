"""The facts column of the transcript page: the session, its agent, its clock, what it spent."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Q, Sum
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

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
        (gettext("State"), cells.mark(words.word_of(words.SESSION_STATES, state))),
        (gettext("Owner"), cells.value(owner)),
        (gettext("Key"), cells.code(session.key)),
        (gettext("Id"), cells.code(str(session.pk))),
        (gettext("Began"), cells.moment(session.created_at)),
        (gettext("Updated"), cells.moment(session.updated_at)),
    ]
    if session.ended_at:
        facts.append((gettext("Ended"), cells.moment(session.ended_at)))
    return Section(gettext("Session"), facts)


def _agent(session: Session, agent: Agent | None, last: Turn | None, *, linked: bool) -> Section:
    name = agent.name if agent else session.agent
    url = reverse("admin:gateway_app_agent_change", args=[agent.pk]) if agent and linked else ""
    model = session.model or (last.model if last else "") or gettext("the agent's")
    facts: list[Fact] = [
        (gettext("Agent"), cells.link(url, name) if url else cells.value(name)),
        (gettext("Model"), cells.value(model)),
        (gettext("Prompt"), _prompt(session, agent if linked else None)),
    ]
    if last and last.context_tokens is not None:
        facts.append((gettext("Context"), cells.value(_context(last.model, last.context_tokens))))
    return Section(gettext("Agent"), facts)


def _prompt(session: Session, agent: Agent | None) -> SafeString | str:
    """The version the session keeps, and what changed: to the newest, or by this one."""
    number = session.agent_version
    if not number:
        return cells.value(gettext("not yet fixed"))
    version = cells.value(gettext("version %(number)s") % {"number": number})
    newest = agent.current_version if agent else number
    if agent and number < newest:
        url = compare_url(agent, number, newest)
        return format_html(
            "{}, {}", version, cells.link(url, gettext("newest is %(number)s") % {"number": newest})
        )
    if agent and number > 1:
        return format_html(
            "{}, {}", version, cells.link(compare_url(agent, number - 1, number), gettext("diff"))
        )
    return version


def _context(model: str, tokens: int) -> str:
    """How full the model's window was at the last request; its size where it is known."""
    provider, _, name = model.partition(":")
    window = host().providers.facts(provider, name).window_tokens if name else None
    if not window:
        return gettext("%(count)s tokens") % {"count": cells.short_count(tokens)}
    told = {"percent": tokens * 100 // window, "window": cells.short_count(window)}
    return gettext("%(percent)s %% of %(window)s") % told


def _behind(revision: int, now: int) -> str:
    if revision < now:
        behind = {"revision": revision, "count": now - revision}
        return gettext("%(revision)s, %(count)s behind") % behind
    return gettext("%(revision)s, up to date") % {"revision": revision}


def _clock(session: Session, last: Turn | None, warm: Mapping[str, int]) -> Section:
    """Where the clock stands, and how far behind it each warm agent and the last request are."""
    facts: list[Fact] = [
        (gettext("Revision"), cells.value(str(session.revision))),
        (gettext("Last removal"), cells.value(str(session.removed_revision))),
        (gettext("Messages"), cells.value(str(session.message_count))),
    ]
    for name, baseline in warm.items():
        where = format_html(gettext("Baseline, {}"), cells.owner(name))
        facts.append((where, cells.value(_behind(baseline, session.revision))))
    if last and last.sent_revision is not None:
        told = _behind(last.sent_revision, session.revision)
        facts.append(
            (gettext("Last request"), cells.value(gettext("revision %(told)s") % {"told": told}))
        )
    if last and last.baseline is not None:
        told = gettext("%(baseline)s at revision %(revision)s") % {
            "baseline": last.baseline,
            "revision": last.revision,
        }
        facts.append((gettext("Its baseline"), cells.value(told)))
    return Section(gettext("Transcript"), facts)


def _last_request(session: Session) -> Turn | None:
    sent = Turn.objects.filter(session=session, sent_revision__isnull=False)
    return sent.defer("content").order_by("-generation").first()


def _of(part: int, whole: int) -> str:
    return gettext("%(place)d of %(count)d") % {"place": part, "count": whole}


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
    facts: list[Fact] = [(gettext("Turns"), cells.value(str(spent["turns"])))]
    if spent["guarded"]:
        facts.append((gettext("Warm"), cells.value(_of(spent["warm"], spent["guarded"]))))
    if spent["failed"]:
        facts.append((gettext("Failed"), cells.value(str(spent["failed"]))))
    if spent["input"] is not None:
        facts.append((gettext("Input tokens"), cells.value(cells.count(spent["input"]))))
    percent = cells.cached_percent(spent["comparable"], spent["cached"])
    if percent is not None:
        facts.append((gettext("Cached input"), cells.value(f"{percent} %")))
    if spent["output"] is not None:
        facts.append((gettext("Output tokens"), cells.value(cells.count(spent["output"]))))
    if spent["cost"] is not None:
        facts.append((gettext("Cost"), cells.dollars(spent["cost"])))
    return Section(gettext("Spent"), facts)


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
