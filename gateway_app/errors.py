"""What the gateway refuses, beside sessions_app.errors.

GatewayError
├── QueueFull              queue_full             too many messages wait already
├── IdempotencyMismatch    idempotency_mismatch   the same clientMessageId, another body
├── Draining               draining               this process takes no new turns
├── ImportRefused          invalid_frame          a line of a file that cannot be imported
└── Unsupported            unsupported            a command or option of a later version
"""


class GatewayError(Exception):
    """A refusal with a stable `code` and one sentence for a person."""

    code = "internal"
    retryable = False


class QueueFull(GatewayError):
    code = "queue_full"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} messages already wait here. Remove one or let the agent finish.")


class IdempotencyMismatch(GatewayError):
    code = "idempotency_mismatch"

    def __init__(self) -> None:
        super().__init__("This id was already used for something else. Use a new one.")


class Draining(GatewayError):
    code = "draining"
    retryable = True

    def __init__(self) -> None:
        super().__init__("This server restarts. Your message was not taken; it is sent again.")


class Unsupported(GatewayError):
    code = "unsupported"


class ImportRefused(GatewayError):
    code = "invalid_frame"

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"Line {line} cannot be imported: {reason}")
