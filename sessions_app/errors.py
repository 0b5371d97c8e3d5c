"""What services refuse.

SessionError
├── SessionNotFound     not_found      missing, deleted, or another person's
├── SessionEnded        session_ended  carries the id of its successor
├── SessionBusy         busy           a turn runs or waits
├── RunFenced           fenced         the run's generation is over
└── MessageInvalid      invalid        the change does not fit the transcript
"""

from uuid import UUID


class SessionError(Exception):
    """A refusal with a stable `code` and one sentence for a person."""

    code = "invalid"


class SessionNotFound(SessionError):
    code = "not_found"

    def __init__(self, message: str = "This conversation does not exist.") -> None:
        super().__init__(message)


class SessionEnded(SessionError):
    code = "session_ended"

    def __init__(self, successor_id: UUID | None) -> None:
        self.successor_id = successor_id
        super().__init__("This conversation has ended. Write in the one that follows it.")


class SessionBusy(SessionError):
    code = "busy"

    def __init__(self, message: str = "An answer is being written. Stop it first.") -> None:
        super().__init__(message)


class RunFenced(SessionError):
    code = "fenced"


class MessageInvalid(SessionError):
    code = "invalid"
