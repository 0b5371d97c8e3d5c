"""What a client knows of one session: a snapshot, and the frames that followed it.

The law of every live view: old state + events = fresh state.
"""

from collections.abc import Iterable
from typing import Any, Self

Json = dict[str, Any]

_SHOWN = ("id", "position", "kind", "state", "parts")


class Gap(AssertionError):
    """A frame that does not follow the last one."""


class Viewer:
    """The state of a client. It drops what it has seen, and refuses a gap."""

    def __init__(self) -> None:
        self.seq = 0
        self.messages: dict[str, Json] = {}
        self.queue: list[Json] = []
        self.running: str | None = None
        self.writing: dict[str, str] = {}
        """Text of the running turn's messages that are not rows yet."""

    def take(self, frames: Iterable[Json]) -> Self:
        """The state after these frames; replies and control frames but snapshots are ignored."""
        for frame in frames:
            if frame.get("type") == "snapshot":
                self._start_anew(frame)
            elif "event" in frame and frame["seq"] > self.seq:
                if frame["prev"] != self.seq:
                    raise Gap(f"{frame} follows {self.seq}")
                self.seq = frame["seq"]
                self._apply(frame.get("turnId"), frame["event"])
        return self

    @property
    def state(self) -> Json:
        """Everything that a person would see, in order."""
        rows = sorted(self.messages.values(), key=lambda row: (row["position"], row["id"]))
        return {
            "messages": rows,
            "queue": self.queue,
            "running": self.running,
            "writing": self.writing,
        }

    def _start_anew(self, snapshot: Json) -> None:
        self.__init__()  # type: ignore[misc]
        self.seq = snapshot["seq"]
        for message in snapshot["messages"]:
            self._row(message)
        self.queue = snapshot["queue"]
        if running := snapshot["running"]:
            for event in running["events"]:
                if event["type"] != "CUSTOM":
                    self._apply(running["turnId"], event)

    def _row(self, message: Json) -> None:
        self.messages[message["id"]] = {name: message[name] for name in _SHOWN}
        if (written := self.writing.pop(message["id"], None)) is not None:
            texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
            assert written == "".join(texts), (written, message)

    def _apply(self, turn_id: str | None, event: Json) -> None:
        match event["type"], event.get("name"):
            case "RUN_STARTED", _:
                self.running = turn_id
            case "TEXT_MESSAGE_START", _:
                self.writing[event["messageId"]] = ""
            case "TEXT_MESSAGE_CONTENT", _:
                self.writing[event["messageId"]] += event["delta"]
            case "RUN_FINISHED" | "RUN_ERROR", _:
                assert not self.writing, self.writing
                self.running = None
            case "CUSTOM", "hermes.message":
                self._row(event["value"])
            case "CUSTOM", "hermes.queue":
                self.queue = event["value"]["queue"]
