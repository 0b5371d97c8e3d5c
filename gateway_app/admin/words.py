"""The one word, icon and tone of every verdict, state, kind and failure, as in chat and docs."""

from dataclasses import dataclass
from typing import Final

from sessions_app.models import Message


@dataclass(frozen=True, slots=True)
class Word:
    """What a person reads for a stored value. `tone` names a colour of admin.css, or is empty."""

    text: str
    icon: str = ""
    tone: str = ""


VERDICTS: Final = {
    "new": Word("New"),
    "reuse": Word("Warm", "flame", "warm"),
    "catch_up": Word("Caught up", "list-plus", "catch"),
    "reload": Word("Loaded again", "history"),
    "rebuild": Word("Rebuilt", "rotate-cw", "rebuilt"),
    "refuse": Word("Refused", "ban", "danger"),
}

REASONS: Final = {
    "rewritten": "history edited",
    "compacted": "older messages summarised",
    "reconfigured": "the agent changed",
    "ended": "the session has ended",
    "deleted": "the session was deleted",
    "unreadable": "a message cannot be read",
}

TURN_STATES: Final = {
    "queued": Word("Queued", "clock"),
    "running": Word("Running", "dot", "live"),
    "waiting_approval": Word("Waiting for approval", "shield-check", "wait"),
    "completed": Word("Completed", "check"),
    "failed": Word("Failed", "triangle-alert", "danger"),
    "stopped": Word("Stopped", "circle-stop"),
    "interrupted": Word("Interrupted", "unplug", "danger"),
    "absorbed": Word("Steered in", "list-end"),
    "held": Word("Held for an operator", "hand", "catch"),
}

SESSION_STATES: Final = {
    "Running": Word("Running", "dot", "live"),
    "Idle": Word("Idle", "check"),
    "Ended": Word("Ended", "archive"),
    "Deleted": Word("Deleted", "ban", "danger"),
}

SESSION_FILTERS: Final = {
    "Running": "running",
    "Waiting for approval": "waiting",
    "Failed": "failed",
    "Idle": "idle",
    "Ended": "ended",
    "Deleted": "deleted",
}
"""What the list of sessions can be narrowed to, and how its address says so."""

ERRORS: Final = {
    "model_unavailable": "model not reachable",
    "model_auth": "key refused",
    "model_rate_limited": "rate limit",
    "model_timeout": "model too slow",
    "model_refused": "content filter",
    "model_invalid": "request not understood",
    "context_full": "context full",
    "interrupted": "server stopped",
    "storage": "storage",
    "limit": "limit reached",
    "internal": "fault",
}

KINDS: Final[dict[str, Word]] = {
    Message.Kind.USER: Word("User", "user"),
    Message.Kind.ASSISTANT: Word("Assistant", "bot"),
    Message.Kind.TOOL: Word("Tool result", "wrench"),
    Message.Kind.OPERATOR: Word("Operator, a person", "headset", "catch"),
    Message.Kind.SYSTEM: Word("System", "scroll-text"),
    Message.Kind.NOTICE: Word("Notice", "info"),
    Message.Kind.SUMMARY: Word("Summary", "fold-vertical"),
    Message.Kind.NOTE: Word("Private note", "sticky-note", "wait"),
    Message.Kind.SESSION_META: Word("Session facts", "settings"),
}

MESSAGE_STATES: Final[dict[str, Word]] = {
    Message.State.ACTIVE: Word("Active", "check"),
    Message.State.COMPACTED: Word("Compacted", "fold-vertical"),
    Message.State.SUPERSEDED: Word("Superseded", "replace"),
    Message.State.BRANCHED: Word("Branched", "git-branch"),
    Message.State.HIDDEN: Word("Hidden", "eye-off", "danger"),
}

TOKEN_STATES: Final = {
    "live": Word("Live", "check", "ok"),
    "expired": Word("Expired", "clock"),
    "revoked": Word("Revoked", "ban", "danger"),
}

FINISHES: Final = {
    "length": "Cut by the model's length limit",
    "content_filter": "Cut by the provider's content filter",
    "refused": "The model declined",
    "stopped": "Stopped here",
    "interrupted": "Interrupted here",
    "error": "Failed here",
}
"""How an answer ended that did not end by itself."""


def word_of(words: dict[str, Word], value: str) -> Word:
    """The word of a stored value; a value of a later version reads as it is stored."""
    return words.get(value) or Word(value)
