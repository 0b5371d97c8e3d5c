"""Agents and their versions: every write."""

from django.db import transaction

from gateway_app.models import DEFAULT_PROMPT, Agent, AgentVersion


def ensure_default_agent() -> None:
    """An agent `main` exists and is the default, if no agent exists yet. Edits are kept."""
    if Agent.objects.exists():
        return
    with transaction.atomic():
        agent = Agent.objects.create(slug="main", name="Assistant", is_default=True)
        AgentVersion.objects.create(agent=agent, number=1, system_prompt=DEFAULT_PROMPT)


def save_agent_version(
    *,
    agent: Agent,
    model: str,
    system_prompt: str,
    temperature: float | None,
    max_output_tokens: int | None,
    created_by_id: int | None,
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
