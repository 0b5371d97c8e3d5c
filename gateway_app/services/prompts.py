"""The frozen part of a session's requests: built once, stored once by content."""

import hashlib
from dataclasses import dataclass

from django.db.models import F

from gateway_app.models import AgentVersion, FrozenPrompt
from gateway_app.providers.base import Prompt, RequestSettings
from gateway_app.tools.registry import dump_schemas


@dataclass(frozen=True, slots=True)
class FrozenConfig:
    """A session's agent as it will stay; `config` is (agent, version, model, prompt hash)."""

    config: tuple[str, int, str, str]
    model: str
    prompt: Prompt
    settings: RequestSettings
    fallbacks: tuple[str, ...] = ()
    """The models to ask, in this order, when `model` cannot be had."""


def freeze_prompt(config: tuple[str, int, str, str]) -> FrozenConfig:
    """The session's agent version and prompt, fixed from now on. Sync, in the caller's transaction.

    Nothing volatile goes in: no clock, no ids, no names. Tools are described as they are now, and
    so for life: a session knows nothing of what becomes of them later.
    """
    version = read_version(config[0], config[1])
    tools = dump_schemas(version.tools.split())
    digest = hashlib.sha256(f"{version.system_prompt}\x00{tools}".encode()).hexdigest()
    FrozenPrompt.objects.bulk_create(
        [FrozenPrompt(hash=digest, system_prompt=version.system_prompt, tool_schemas=tools)],
        ignore_conflicts=True,
    )
    return _frozen(version, (config[0], version.number, config[2], digest), tools)


def read_frozen(config: tuple[str, int, str, str]) -> FrozenConfig:
    """What a session froze earlier, read back. Raises DoesNotExist for a lost prompt or version."""
    prompt = FrozenPrompt.objects.get(pk=config[3])
    frozen = _frozen(read_version(config[0], config[1]), config, prompt.tool_schemas)
    return FrozenConfig(
        config,
        frozen.model,
        Prompt(prompt.hash, prompt.system_prompt, prompt.tool_schemas),
        frozen.settings,
        frozen.fallbacks,
    )


def read_version(agent: str, number: int) -> AgentVersion:
    """A version of an agent; number 0 is the current one."""
    versions = AgentVersion.objects.filter(agent__slug=agent)
    if number:
        return versions.get(number=number)
    return versions.get(number=F("agent__current_version"))


def _frozen(version: AgentVersion, config: tuple[str, int, str, str], tools: str) -> FrozenConfig:
    return FrozenConfig(
        config=config,
        model=config[2] or version.model,
        prompt=Prompt(config[3], version.system_prompt, tools),
        settings=RequestSettings(version.temperature, version.max_output_tokens),
        fallbacks=tuple(version.fallback_models.split()),
    )
