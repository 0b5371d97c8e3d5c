"""What the gateway refuses, beside sessions_app.errors.

GatewayError (a Refusal)
├── QueueFull              queue_full             too many messages wait already
├── IdempotencyMismatch    idempotency_mismatch   the same clientMessageId, another body
├── Draining               draining               this process takes no new turns
├── ImportRefused          invalid_frame          a line of a file that cannot be imported
└── Unsupported            unsupported            a command or option of a later version
"""

from sessions_app.errors import Refusal
from sessions_app.sentences import Sentence, say


class GatewayError(Refusal):
    retryable = False


class QueueFull(GatewayError):
    code = "queue_full"

    def __init__(self, limit: int) -> None:
        super().__init__(
            say(
                "%(limit)s messages already wait here. Remove one or let the agent finish.",
                limit=limit,
            )
        )


class IdempotencyMismatch(GatewayError):
    code = "idempotency_mismatch"

    def __init__(self) -> None:
        super().__init__(say("This id was already used for something else. Use a new one."))


class Draining(GatewayError):
    code = "draining"
    retryable = True

    def __init__(self) -> None:
        super().__init__(say("This server restarts. Your message was not taken; it is sent again."))


class Unsupported(GatewayError):
    code = "unsupported"


class ImportRefused(GatewayError):
    code = "invalid_frame"

    def __init__(self, line: int, reason: Sentence) -> None:
        text = say("Line %(line)s cannot be imported: %(reason)s", line=line, reason=reason)
        super().__init__(text)
