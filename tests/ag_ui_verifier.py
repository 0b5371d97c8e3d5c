"""What every run must look like: AG-UI's own models without an unknown field, and its order.

The package's models keep unknown fields and take both spellings of a name, so validating alone
proves little: each event must also come back from its model exactly as it went in.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ag_ui.core import Event
from pydantic import BaseModel, TypeAdapter

Json = dict[str, Any]

_EVENTS: Final[TypeAdapter[Any]] = TypeAdapter(Event)

_OPENS: Final = {
    "TEXT_MESSAGE_START": ("text", "messageId"),
    "REASONING_START": ("reasoning", "messageId"),
    "REASONING_MESSAGE_START": ("reasoning message", "messageId"),
    "TOOL_CALL_START": ("tool call", "toolCallId"),
    "STEP_STARTED": ("step", "stepName"),
}
_NEEDS: Final = {
    "TEXT_MESSAGE_CONTENT": ("text", "messageId"),
    "REASONING_MESSAGE_CONTENT": ("reasoning message", "messageId"),
    "TOOL_CALL_ARGS": ("tool call", "toolCallId"),
}
_CLOSES: Final = {
    "TEXT_MESSAGE_END": ("text", "messageId"),
    "REASONING_MESSAGE_END": ("reasoning message", "messageId"),
    "REASONING_END": ("reasoning", "messageId"),
    "TOOL_CALL_END": ("tool call", "toolCallId"),
    "STEP_FINISHED": ("step", "stepName"),
}
_TERMINAL: Final = {"RUN_FINISHED", "RUN_ERROR"}


class NotAGUI(AssertionError):
    """An event or an order of events that AG-UI does not know."""


def check_event(event: Json) -> None:
    """The event is one of AG-UI, with no field it does not define. Raises NotAGUI."""
    try:
        model = _EVENTS.validate_python(event)
    except ValueError as exc:
        raise NotAGUI(f"{event}: {exc}") from exc
    for owner, extra in _unknown(model):
        raise NotAGUI(f"{event}: {owner} has no field {', '.join(extra)}")
    again = _EVENTS.dump_python(model, mode="json", by_alias=True)
    if again != event:
        raise NotAGUI(f"{event} is read as {again}")


def _unknown(value: object) -> Iterator[tuple[str, list[str]]]:
    """Every model below `value` that holds fields of its own making."""
    if isinstance(value, BaseModel):
        if value.model_extra:
            yield type(value).__name__, sorted(value.model_extra)
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _unknown(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _unknown(item)


class RunOrder:
    """The order of a session's events, run by run. `feed` raises NotAGUI where it is broken."""

    def __init__(self) -> None:
        self.run_id: str | None = None
        self.turn_id: str | None = None
        self.ended: list[str] = []
        """The runs that are over, oldest first."""
        self._open: dict[tuple[str, str], None] = {}
        self._called: set[str] = set()
        self._seen: set[str] = set()

    def feed(self, turn_id: str | None, event: Json) -> None:
        """The next event; `turn_id` is its envelope's, None for an event of no turn."""
        kind = event["type"]
        if turn_id is None:
            if kind != "CUSTOM":
                raise NotAGUI(f"{kind} belongs to no turn")
        elif kind == "RUN_STARTED":
            self._start(turn_id, event["runId"])
        elif self.run_id is None or turn_id != self.turn_id:
            raise NotAGUI(f"{event} of turn {turn_id} stands outside a run of it")
        elif kind in _TERMINAL:
            self._end(event)
        else:
            self._within(event)

    def _start(self, turn_id: str, run_id: str) -> None:
        if self.run_id is not None:
            raise NotAGUI(f"{run_id} starts while {self.run_id} runs")
        if run_id in self._seen or not run_id.startswith(f"{turn_id}."):
            raise NotAGUI(f"{run_id} is not a new run of turn {turn_id}")
        self._seen.add(run_id)
        self.run_id, self.turn_id = run_id, turn_id
        self._open, self._called = {}, set()

    def _end(self, event: Json) -> None:
        assert self.run_id is not None
        if self._open:
            raise NotAGUI(f"{event['type']} while {list(self._open)} are open")
        if event.get("runId", self.run_id) != self.run_id:
            raise NotAGUI(f"{event} ends another run than {self.run_id}")
        self.ended.append(self.run_id)
        self.run_id = self.turn_id = None

    def _within(self, event: Json) -> None:
        kind = event["type"]
        if kind in _OPENS:
            item = self._item(_OPENS[kind], event)
            if item in self._open or event.get("toolCallId") in self._called:
                raise NotAGUI(f"{item} is opened twice")
            if item[0] == "reasoning message" and ("reasoning", item[1]) not in self._open:
                raise NotAGUI(f"{item} outside its reasoning")
            self._open[item] = None
        elif kind in _NEEDS:
            if (item := self._item(_NEEDS[kind], event)) not in self._open:
                raise NotAGUI(f"{kind} outside {item}")
            if not event["delta"]:
                raise NotAGUI(f"{kind} without content")
        elif kind in _CLOSES:
            item = self._item(_CLOSES[kind], event)
            if item not in self._open:
                raise NotAGUI(f"{kind} of {item}, which is not open")
            if item[0] == "reasoning" and ("reasoning message", item[1]) in self._open:
                raise NotAGUI(f"{kind} before its message's end")
            del self._open[item]
            self._called |= {item[1]} if item[0] == "tool call" else set()
        elif kind == "TOOL_CALL_RESULT":
            if event["toolCallId"] not in self._called:
                raise NotAGUI(f"{event} has no call before it")
        elif kind != "CUSTOM":
            raise NotAGUI(f"{kind} is not an event that Hermes sends")

    def _item(self, named: tuple[str, str], event: Json) -> tuple[str, str]:
        return named[0], event[named[1]]


def verify(events: Iterable[tuple[str | None, Json]], *, over: bool = True) -> list[str]:
    """Checks (turn, event) pairs from a run's begin on; the runs that ended. Raises NotAGUI.

    `over`: no run may be left without its terminal event.
    """
    order = RunOrder()
    for turn_id, event in events:
        check_event(event)
        order.feed(turn_id, event)
    if over and order.run_id is not None:
        raise NotAGUI(f"{order.run_id} has no end")
    return order.ended


def verify_frames(frames: Iterable[Json], *, over: bool = True) -> list[str]:
    """The same for event frames as a client got them."""
    pairs = [(frame.get("turnId"), frame["event"]) for frame in frames if "event" in frame]
    return verify(pairs, over=over)
