"""The state machine: every operation is a rule, and a turn has others' operations in its midst."""

from collections.abc import Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.coherence.appends import APPENDS
from tests.coherence.edits import EDITS
from tests.coherence.lives import LIVES
from tests.coherence.races import MOVES, PATTERNS, race, spoil
from tests.coherence.turns import begin, roll_back_step, start_waiting_turn, whole_step
from tests.coherence.world import Operation, Pick, Stage, World

TURNS: dict[str, Operation] = {
    "start next": start_waiting_turn,
    "rollback: turn": roll_back_step,
    "spoil": spoil,
}
OPERATIONS: dict[str, Operation] = {**APPENDS, **EDITS, **LIVES, **TURNS}

PLACES = st.tuples(st.sampled_from([0, 0, 0, 2, 1]), st.sampled_from([0, 0, 0, 1, 1, 2]))
"""(session, process): mostly the same ones, so that they meet"""
PICKS = st.integers(0, 2**40)
_ANY = [*sorted(OPERATIONS), *sorted(APPENDS), *sorted(EDITS)]
FAVOURITE = "one of the favourites"
"""Each run has a few favourite operations, so that it does some things often."""
BESIDE = st.lists(
    st.tuples(st.sampled_from([*_ANY, *[FAVOURITE] * len(_ANY), *["step"] * 20]), PLACES, PICKS),
    max_size=5,
)


CHANGES = st.sampled_from([*sorted(EDITS), "delete: service"])
RACES = st.lists(st.sampled_from(MOVES), min_size=1, max_size=6)


class CoherenceMachine(RuleBasedStateMachine):
    """Three sessions, three processes, a bare SQL client. Set `stage` before it runs."""

    stage: ClassVar[Stage]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.stage)
        self.favourites: list[str] = []

    @initialize(names=st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=4))
    def choose_favourites(self, names: list[str]) -> None:
        self.favourites = names

    def teardown(self) -> None:
        self.world.close()

    def operate(self, name: str, place: tuple[int, int], pick: int) -> None:
        world = self.world
        session_id, process = world.sessions[place[0]], world.processes[place[1]]
        if name == "step":
            if turn_is_here(world, place[0]):
                whole_step(world, session_id, Pick(pick))
            return
        if name == FAVOURITE:
            pick, place_in_list = divmod(pick, len(self.favourites))
            name = self.favourites[place_in_list]
        world.operate(name, OPERATIONS[name], session_id, process, Pick(pick))

    @rule(place=PLACES, pick=PICKS, beside=BESIDE, steps=st.integers(1, 6))
    def whole_turn(self, place: tuple[int, int], pick: int, beside: list[Any], steps: int) -> None:
        """A turn from its message to its end, with whatever others do in its midst."""
        world, session = self.world, place[0]
        session_id, process = world.sessions[session], world.processes[place[1]]
        choices = Pick(pick)
        if session_id not in world.turns:
            begin(world, session_id, process, choices)
        for number in range(max(steps, len(beside))):
            if turn_is_here(world, session):
                whole_step(world, session_id, choices)
            if number < len(beside):
                self.operate(*beside[number])
        for _ in range(8):
            if turn_is_here(world, session):
                whole_step(world, session_id, choices)

    @rule(place=PLACES, pick=PICKS)
    def quiet_turns(self, place: tuple[int, int], pick: int) -> None:
        """Two turns with nobody beside them: the second reuses what the first left."""
        for _ in range(2):
            self.whole_turn(place, pick, [], 1)

    @rule(place=PLACES, pick=PICKS)
    def begin_turn(self, place: tuple[int, int], pick: int) -> None:
        session_id, process = self.world.sessions[place[0]], self.world.processes[place[1]]
        begin(self.world, session_id, process, Pick(pick))

    @rule(place=PLACES, pick=PICKS, times=st.integers(1, 4))
    def go_on(self, place: tuple[int, int], pick: int, times: int) -> None:
        """An open turn goes on for a while."""
        for number in range(times):
            self.operate("step", place, pick + number)

    @rule(place=PLACES, pick=PICKS, moves=RACES)
    def race_the_guard(self, place: tuple[int, int], pick: int, moves: Sequence[str]) -> None:
        world = self.world
        session_id, process = world.sessions[place[0]], world.processes[place[1]]
        race(world, session_id, process, Pick(pick), moves)

    @rule(place=PLACES, pick=PICKS, moves=st.sampled_from(PATTERNS))
    def race_by_pattern(self, place: tuple[int, int], pick: int, moves: Sequence[str]) -> None:
        self.quiet_turns(place, pick)
        self.race_the_guard(place, pick, moves)

    @rule(name=st.sampled_from(sorted(APPENDS)), place=PLACES, pick=PICKS, turn=st.booleans())
    def somebody_adds(self, name: str, place: tuple[int, int], pick: int, turn: bool) -> None:
        self.operate(name, place, pick)
        if turn:
            self.whole_turn(place, pick, [], 1)

    @rule(name=CHANGES, place=PLACES, pick=PICKS, turn=st.booleans())
    def somebody_edits(self, name: str, place: tuple[int, int], pick: int, turn: bool) -> None:
        self.operate(name, place, pick)
        if turn:
            self.whole_turn(place, pick, [], 1)

    @rule(place=PLACES, pick=PICKS, turn=st.booleans())
    def a_favourite(self, place: tuple[int, int], pick: int, turn: bool) -> None:
        self.operate(FAVOURITE, place, pick)
        if turn:
            self.whole_turn(place, pick, [], 1)

    @rule(name=st.sampled_from([*sorted(LIVES), *sorted(TURNS)]), place=PLACES, pick=PICKS)
    def a_life_changes(self, name: str, place: tuple[int, int], pick: int) -> None:
        self.operate(name, place, pick)


def turn_is_here(world: World, session: int) -> bool:
    turn = world.turns.get(world.sessions[session])
    return turn is not None and not turn.orphaned
