"""Agents and their versions: every write."""

from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from gateway_app.models import DEFAULT_PROMPT, Agent, AgentVersion
from gateway_app.services.prompts import freeze_prompt
from sessions_app.errors import MessageInvalid
from sessions_app.models import Session
from sessions_app.sentences import say

_BATCH: Final = 500


def ensure_default_agent() -> None:
    """An agent `main` exists and is the default, if no agent exists yet. Edits are kept."""
    if Agent.objects.exists():
        return
    with transaction.atomic():
        agent = Agent.objects.create(slug="main", name="Assistant", is_default=True)
        AgentVersion.objects.create(agent=agent, number=1, system_prompt=DEFAULT_PROMPT)


def create_agent(
    *,
    slug: str,
    name: str,
    model: str,
    system_prompt: str,
    temperature: float | None,
    max_output_tokens: int | None,
    created_by_id: int | None,
    fallback_models: str = "",
    tools: str = "",
) -> Agent:
    """A new agent stands with its version 1. Raises IntegrityError for a slug that is taken."""
    with transaction.atomic():
        agent = Agent.objects.create(slug=slug, name=name)
        AgentVersion.objects.create(
            agent=agent,
            number=1,
            model=model,
            system_prompt=system_prompt,
            temperature=temperature,
            max_output_tokens=max_output_tokens,
            fallback_models=fallback_models,
            tools=tools,
            created_by_id=created_by_id,
        )
    return agent


def rename_agent(*, agent: Agent, name: str) -> None:
    """People read the new name from now on; no version is made, for no model sees a name."""
    Agent.objects.filter(pk=agent.pk).update(name=name)


def make_default_agent(*, agent: Agent) -> None:
    """New sessions begin with this agent, and with no other."""
    with transaction.atomic():
        # all of them, in order: two switches at once must not both find no default
        list(Agent.objects.select_for_update(no_key=True).order_by("pk").values_list("pk"))
        Agent.objects.filter(is_default=True).exclude(pk=agent.pk).update(is_default=False)
        Agent.objects.filter(pk=agent.pk).update(is_default=True)


def save_agent_version(
    *,
    agent: Agent,
    model: str,
    system_prompt: str,
    temperature: float | None,
    max_output_tokens: int | None,
    created_by_id: int | None,
    fallback_models: str = "",
    tools: str = "",
) -> AgentVersion:
    """Makes the agent's next version, unless nothing differs from the current one.

    Running sessions keep the version they began with.
    """
    with transaction.atomic():
        locked = Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        current = locked.versions.filter(number=locked.current_version).first()
        values = {
            "model": model,
            "system_prompt": system_prompt,
            "temperature": temperature,
            "max_output_tokens": max_output_tokens,
            "fallback_models": fallback_models,
            "tools": tools,
        }
        if current and all(getattr(current, name) == value for name, value in values.items()):
            return current
        number = locked.current_version + 1 if current else 1
        version = AgentVersion.objects.create(
            agent=locked, number=number, created_by_id=created_by_id, **values
        )
        locked.current_version = number
        locked.save(update_fields=["current_version"])
    return version


def sessions_behind(agent: Agent) -> QuerySet[Session]:
    """Running conversations of the agent that began with another version than its current one."""
    begun = Session.objects.live().filter(agent=agent.slug, state="active").exclude(prompt_hash="")
    return begun.exclude(agent_version=agent.current_version)


def apply_version(*, agent: Agent, number: int) -> int:
    """The agent's running conversations have its version `number` from now on; how many moved.

    Each one's next request is a rebuild. A conversation keeps a model that was chosen for it.
    Raises MessageInvalid unless the version is the agent's current one.
    """
    agent.refresh_from_db()
    if agent.current_version != number:
        raise MessageInvalid(
            say("Version %(number)s was saved meanwhile. Look again.", number=agent.current_version)
        )
    with transaction.atomic():
        _, version, _, prompt_hash = freeze_prompt((agent.slug, number, "", "")).config
    moved, last = 0, None
    while True:
        waiting = sessions_behind(agent).order_by("pk")
        if last is not None:
            waiting = waiting.filter(pk__gt=last)
        with transaction.atomic():
            locked = waiting.select_for_update(no_key=True)
            ids = list(locked.values_list("pk", flat=True)[:_BATCH])
            moved += Session.objects.filter(pk__in=ids).update(
                agent_version=version, prompt_hash=prompt_hash
            )
        if len(ids) < _BATCH:
            return moved
        last = ids[-1]


def checked_model(model: str) -> str:
    """The model as a session may name it; empty: its agent's. Raises MessageInvalid."""
    if model and not all(model.partition(":")):
        raise MessageInvalid(say("Name a model as provider:model, such as openai:gpt-5-mini."))
    return model


def agent_slug(asked: str | None) -> str:
    """The slug of the agent that was asked for, or of the default one. Raises MessageInvalid."""
    agents = Agent.objects.filter(slug=asked) if asked else Agent.objects.filter(is_default=True)
    slug = agents.values_list("slug", flat=True).first()
    if slug is None:
        raise MessageInvalid(
            say("There is no agent '%(name)s'.", name=asked)
            if asked
            else say("There is no default agent.")
        )
    return slug
