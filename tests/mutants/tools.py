"""Faults of tools: run too early, twice, for anybody, or told of wrongly."""

from typing import Any

from gateway_app.event_log import RunLog
from gateway_app.services import dead_runs
from gateway_app.tools import calls, registry
from gateway_app.turns import ending, tool_step
from tests.mutants.catalogue import mutant, patch

TURNS = "tests/gateway_app/tools/test_tool_turns.py::test_it_"
ENDINGS = "tests/gateway_app/tools/test_tool_endings.py::test_it_"


@mutant(
    "a tool runs before its call is logged",
    proof="tests/gateway_app/tools/test_tool_turns.py::TestWithRareFlushes"
    "::test_it_logs_a_call_before_it_is_made",
)
def _() -> None:
    async def at_once(self: RunLog) -> None:
        return

    RunLog.landed = at_once  # type: ignore[method-assign]


@mutant(
    "recovery forgets calls that were running",
    proof=f"{ENDINGS}goes_on_after_a_crash_without_calling_again",
)
def _() -> None:
    def forgotten(real: Any) -> Any:
        def read(logged: Any) -> Any:
            dead = real(logged)
            dead.calls, dead.results = {}, {}
            return dead

        return read

    patch(dead_runs, "read_dead_run", forgotten)


@mutant(
    "recovery takes a result for an unknown outcome",
    proof=f"{ENDINGS}goes_on_after_a_crash_without_calling_again",
)
def _() -> None:
    def doubted(real: Any) -> Any:
        def result(event: Any) -> Any:
            return real({**event, "content": dead_runs.UNKNOWN})

        return result

    patch(dead_runs, "_result", doubted)


@mutant("a stop forgets the calls", proof=f"{ENDINGS}stops_while_a_tool_runs")
def _() -> None:
    def cut(real: Any) -> Any:
        def rows(draft: Any, finish: Any) -> Any:
            draft.calls, draft.results = [], {}
            return real(draft, finish)

        return rows

    patch(ending, "step_rows", cut)


@mutant("any tool may be called", proof=f"{TURNS}offers_no_tool_to_an_agent_that_has_none")
def _() -> None:
    tool_step.read_names = lambda _: [one.name for one in registry.all_tools()]  # type: ignore[assignment]


@mutant(
    "a tool runs for a closed account",
    proof=f"{TURNS}runs_nothing_for_somebody_whose_account_was_closed",
)
def _() -> None:
    from django.contrib.auth.models import User

    tool_step.active_user = lambda user_id: User.objects.get(pk=user_id)  # type: ignore[assignment]


@mutant("a model hears what a tool raised", proof=f"{TURNS}tells_the_model_why_there_is_no_result")
def _() -> None:
    calls.ToolError = Exception  # type: ignore[misc,assignment]
