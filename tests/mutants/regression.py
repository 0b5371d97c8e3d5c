"""What each test of the founding regression guards, taken out; and of one case."""

import itertools
from dataclasses import replace
from typing import Any

from gateway_app import host, profiles
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.turns import live_run
from sessions_app.models import Message
from sessions_app.selectors import read_clock
from tests.mutants.catalogue import CATALOGUE, mutant, patch

FIRST_TURN = "tests/gateway_app/test_first_turn_session_meta.py::test_it_"
PREFIX = "tests/gateway_app/coherence/test_prefix.py::test_it_"


@mutant(
    "first turn: the marker row is written and not told",
    proof=FIRST_TURN + "ends_the_first_turn_with_the_baseline_at_the_revision",
)
def _() -> None:
    def write_run(real: Any) -> Any:
        def wrapped(*, write: Any) -> Any:
            told = [one for one in write.messages if one.kind != "session_meta"]
            written = real(write=replace(write, messages=told))
            for one in write.messages:
                if one.kind == "session_meta":
                    Message.objects.create(session_id=write.run.session_id, kind=one.kind, parts=[])
            return written

        return wrapped

    patch(live_run, "write_run", write_run)


@mutant(
    "first turn: the receiver is gone",
    proof=FIRST_TURN + "reuses_the_cached_agent_for_the_second_message",
)
def _() -> None:
    CATALOGUE["receiver disconnected"].apply()


@mutant(
    "first turn: the baseline follows the live value after each write",
    proof=FIRST_TURN + "catches_up_when_the_receiver_is_disconnected",
)
def _() -> None:
    def write_run(real: Any) -> Any:
        def wrapped(*, write: Any) -> Any:
            written = real(write=write)
            agent, clock = (
                host.host().cache.get(write.run.session_id),
                read_clock(write.run.session_id),
            )
            if agent is not None and clock is not None:
                agent.baseline = (clock.revision, clock.incarnation)
            return written

        return wrapped

    patch(live_run, "write_run", write_run)


@mutant(
    "first turn: something volatile stands in the prompt",
    proof=FIRST_TURN + "starts_the_second_request_with_the_bytes_of_the_first",
)
def _() -> None:
    numbers = itertools.count()

    def body(real: Any) -> Any:
        def wrapped(self: Any, *, prompt: Any, **rest: Any) -> Any:
            volatile = replace(prompt, system=f"{prompt.system} It is {next(numbers)} o'clock.")
            return real(self, prompt=volatile, **rest)

        return wrapped

    patch(OpenAIChatWire, "body", body)


@mutant(
    "first turn: the live revision is re-read",
    proof=FIRST_TURN + "sends_a_foreign_row_of_the_first_turns_midst_with_the_second",
)
def _() -> None:
    CATALOGUE["rebaseline re-reads the live revision"].apply()


@mutant(
    "first turn: a foreign row takes the last block",
    proof=FIRST_TURN + "sends_a_foreign_row_of_the_first_turns_midst_with_the_second",
)
def _() -> None:
    CATALOGUE["a row without a position goes into the last block"].apply()


@mutant(
    "first turn: signal before the commit",
    proof=FIRST_TURN + "keeps_baseline_and_revision_equal_when_a_turn_rolls_back",
)
def _() -> None:
    CATALOGUE["signal before the commit"].apply()


@mutant(
    "a frozen prompt serves any configuration",
    proof=PREFIX + "does_not_mix_prompts_when_the_first_turn_is_reconfigured",
)
def _() -> None:
    def get(real: Any) -> Any:
        async def wrapped(self: Any, config: Any, frozen: Any = None) -> Any:
            return await real(self, config, frozen and replace(frozen, config=config))

        return wrapped

    patch(profiles.Profiles, "get", get)
