"""What services refuse.

Refusal                  a stable `code`, and a Sentence for a person
└── SessionError
    ├── SessionNotFound     not_found      missing, deleted, or another person's
    ├── SessionEnded        session_ended  carries the id of its successor
    ├── SessionBusy         busy           a turn runs or waits
    ├── RunFenced           fenced         the run's generation is over
    └── MessageInvalid      invalid        the change does not fit the transcript
"""

from typing import Final
from uuid import UUID

from sessions_app.sentences import Sentence, say

_MISSING: Final = say("This conversation does not exist.")


class Refusal(Exception):
    """Its `str` is English; whoever shows it to a person translates its `sentence`."""

    code = "internal"

    def __init__(self, sentence: Sentence) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class SessionError(Refusal):
    code = "invalid"


class SessionNotFound(SessionError):
    code = "not_found"

    def __init__(self, sentence: Sentence = _MISSING) -> None:
        super().__init__(sentence)


class SessionEnded(SessionError):
    code = "session_ended"

    def __init__(self, successor_id: UUID | None) -> None:
        self.successor_id = successor_id
        super().__init__(say("This conversation has ended. Write in the one that follows it."))


class SessionBusy(SessionError):
    code = "busy"

    def __init__(self) -> None:
        super().__init__(say("An answer is being written. Stop it first."))


class RunFenced(SessionError):
    code = "fenced"


class MessageInvalid(SessionError):
    code = "invalid"
