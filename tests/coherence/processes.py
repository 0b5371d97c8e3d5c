"""Processes of one gateway, side by side in one thread: each has its cache and its receivers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from gateway_app import agent_cache, receivers
from gateway_app.agent_cache import AgentCache, ConfigChanged, GuardedRequest
from gateway_app.cached_agent import CachedAgent, Profile
from gateway_app.profiles import _signature
from gateway_app.providers.base import Wire
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.services.prompts import FrozenConfig, read_frozen
from gateway_app.services.runs import read_sent
from gateway_app.services.starting import RunLease
from sessions_app.selectors import read_clock
from sessions_app.signals import TranscriptCommit, TranscriptRow, transcript_committed

_READS = ("read_clock", "read_changed", "read_visible")


class MarkedWire(OpenAIChatWire):
    """Another wire format: the same messages in other bytes."""

    name = "marked-chat/1"

    def encode(self, row: TranscriptRow) -> str:
        return super().encode(row).replace("{", '{"marked":true,', 1)


@dataclass(frozen=True)
class NamedProvider:
    """What a profile needs of a provider: values only, for no model is called here."""

    name: str
    wire: Wire
    fingerprint: str


PROVIDERS = {
    "openai": NamedProvider("openai", OpenAIChatWire(), "first"),
    "other": NamedProvider("other", MarkedWire(), "second"),
}


Config = tuple[str, int, str, str]
_profiles: dict[Config, Profile] = {}


class Process:
    """One process: its name on leases, its cache. `warm=False`: it keeps no agents at all."""

    def __init__(self, name: str, *, entries: int = 128, warm: bool = True) -> None:
        self.name, self.entries, self.warm = name, entries, warm
        self.lives = 0
        self.verdicts: dict[tuple[str, str], int] = {}
        self.start()

    def start(self) -> None:
        """A new life: nothing is remembered, the leases bear another name."""
        self.lives += 1
        self.lease_owner = f"{self.name}:{self.lives}"
        self.cache = AgentCache(entries=self.entries, idle_s=3600, size_bytes=2**30)
        self.cache.verdicts = self.verdicts

    def agent(self, session_id: UUID) -> CachedAgent | None:
        """The cached agent, without making it the most recently used."""
        return self.cache._agents.get(session_id)

    @property
    def agents(self) -> dict[UUID, CachedAgent]:
        return dict(self.cache._agents)

    def profile(self, config: Config, frozen: FrozenConfig | None) -> Profile:
        """As `Profiles.get` makes it, and keeps it."""
        kept = _profiles.get(config)
        if kept is not None:
            return kept
        if frozen is None or frozen.config != config:
            frozen = read_frozen(config)
        name, _, model = (frozen.model or "openai:fake-1").partition(":")
        provider = PROVIDERS[name]
        profile = _profiles[config] = Profile(
            config=config,
            provider=name,
            model=model,
            wire=provider.wire,
            prompt=frozen.prompt,
            settings=frozen.settings,
            signature=_signature(provider, model, frozen),  # type: ignore[arg-type]
        )
        return profile

    def guard(self, run: RunLease, config: Config | None = None) -> tuple[GuardedRequest, Profile]:
        """As a live run asks for its next request; `config`: what it knows of the session's."""
        config = config or run.config
        while True:
            profile = self.profile(config, run.frozen)
            try:
                guarded = self.cache.guard(
                    run.session_id,
                    profile,
                    block=run.block or None,
                    generation=run.generation,
                    last_sent=_no_record if run.first_turn else read_sent,
                )
            except ConfigChanged:
                clock = read_clock(run.session_id)
                assert clock is not None
                config = clock.config
                continue
            return guarded, profile


def _no_record(_: UUID) -> None:
    return None


class Signals:
    """Which process hears the commits of this thread, and when."""

    def __init__(self) -> None:
        self._held: list[TranscriptCommit] | None = None
        transcript_committed.connect(self._hold)

    def close(self) -> None:
        transcript_committed.disconnect(self._hold)
        receivers._caches.clear()

    @contextmanager
    def of(self, process: Process) -> Iterator[None]:
        """Commits within reach the receivers of this process."""
        before = list(receivers._caches)
        receivers._caches.clear()
        if process.warm:
            receivers.register_cache(process.cache)
        try:
            yield
        finally:
            receivers._caches.clear()
            for cache in before:
                receivers.register_cache(cache)

    @contextmanager
    def held(self) -> Iterator[list[TranscriptCommit]]:
        """Commits within are kept: their receivers run later, as in a thread that is slow."""
        before = list(receivers._caches)
        receivers._caches.clear()
        self._held = kept = []
        try:
            yield kept
        finally:
            self._held = None
            for cache in before:
                receivers.register_cache(cache)

    def deliver(self, process: Process, commit: TranscriptCommit) -> None:
        """The receivers of a kept commit run now."""
        with self.of(process):
            receivers.rebaseline(commit=commit)

    def _hold(self, *, commit: TranscriptCommit, **_: Any) -> None:
        if self._held is not None:
            self._held.append(commit)


class GuardSeam:
    """Lets others write between the guard's own reads: the reads are the real ones."""

    def __init__(self) -> None:
        self._real: dict[str, Any] = {}
        self._steps: list[Callable[[], None] | None] = []
        self.fired = 0

    def open(self) -> None:
        for name in _READS:
            self._real[name] = getattr(agent_cache, name)
            setattr(agent_cache, name, self._around(self._real[name]))

    def close(self) -> None:
        for name, read in self._real.items():
            setattr(agent_cache, name, read)

    def arm(self, steps: list[Callable[[], None] | None]) -> None:
        """The steps run one each before and after the guard's next reads."""
        self._steps, self.fired = list(steps), 0

    def disarm(self) -> None:
        self._steps = []

    def _around(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            self._step()
            found = read(*args)
            self._step()
            return found

        return wrapped

    def _step(self) -> None:
        step = self._steps.pop(0) if self._steps else None
        if step is not None:
            self.fired += 1
            step()
