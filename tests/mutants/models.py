"""Faults of what passes between a turn and the models: fallbacks, replay, keys."""

from dataclasses import replace
from typing import Any

from gateway_app.providers.http import HTTPProvider
from gateway_app.turns import fallback, tool_step
from gateway_app.turns.live_run import LiveRun
from gateway_app.turns.runner import TurnRunner
from tests.mutants.catalogue import mutant, patch

FALLBACK = "tests/gateway_app/test_fallback_models.py::test_"
ANTHROPIC = "tests/gateway_app/test_anthropic_turns.py::test_"


@mutant(
    "fallback: it shares the own model's cached agent",
    proof=FALLBACK + "a_fallback_leaves_the_own_models_prefix_alone",
)
def _() -> None:
    def init(real: Any) -> Any:
        def wrapped(self: TurnRunner, **parts: Any) -> None:
            real(self, **parts)
            self.fallback_cache = self._cache

        return wrapped

    patch(TurnRunner, "__init__", init)


@mutant(
    "fallback: its record stands for the own model's",
    proof=FALLBACK + "a_cold_process_knows_the_own_models_last_request",
)
def _() -> None:
    def remember(real: Any) -> Any:
        def wrapped(self: LiveRun, guarded: Any, profile: Any) -> None:
            real(self, guarded, profile)
            self.record.sent = guarded.record

        return wrapped

    patch(LiveRun, "_remember", remember)


@mutant(
    "fallback: a wrong key is hidden by it",
    proof=FALLBACK + "no_other_model_hides_what_must_be_mended_or_was_begun",
)
def _() -> None:
    patch(fallback, "FALLBACK_CODES", lambda real: real | {"model_auth"})


@mutant(
    "signed reasoning is shown and not kept",
    proof=ANTHROPIC + "it_sends_signed_reasoning_back_as_it_came",
)
def _() -> None:
    patch(tool_step, "sent_parts", lambda real: lambda draft: None)


@mutant(
    "a key that a server repeats is shown",
    proof="tests/gateway_app/test_keys_stay_here.py::test_no_key_and_no_traceback_gets_out",
)
def _() -> None:
    def init(real: Any) -> Any:
        def wrapped(self: HTTPProvider, *args: Any, **kwargs: Any) -> None:
            real(self, *args, **kwargs)
            self.wording = replace(self.wording, secrets=())

        return wrapped

    patch(HTTPProvider, "__init__", init)
