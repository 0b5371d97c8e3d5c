"""The one word, icon and tone of every verdict, state, kind and failure, as in chat and docs."""

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from sessions_app.models import Message


@dataclass(frozen=True, slots=True)
class Word:
    """What a person reads for a stored value. `tone` names a colour of admin.css, or is empty."""

    source: str
    icon: str = ""
    tone: str = ""

    @property
    def text(self) -> str:
        """The word in the reader's language."""
        return gettext(self.source)


VERDICTS: Final = {
    "new": Word(_("New")),
    "reuse": Word(_("Warm"), "flame", "warm"),
    "catch_up": Word(_("Caught up"), "list-plus", "catch"),
    "reload": Word(_("Loaded again"), "history"),
    "rebuild": Word(_("Rebuilt"), "rotate-cw", "rebuilt"),
    "refuse": Word(_("Refused"), "ban", "danger"),
}

REASONS: Final = {
    "rewritten": _("history edited"),
    "compacted": _("older messages summarised"),
    "reconfigured": _("the agent changed"),
    "ended": _("the session has ended"),
    "deleted": _("the session was deleted"),
    "unreadable": _("a message cannot be read"),
}

TURN_STATES: Final = {
    "queued": Word(_("Queued"), "clock"),
    "running": Word(_("Running"), "dot", "live"),
    "waiting_approval": Word(_("Waiting for approval"), "shield-check", "wait"),
    "completed": Word(_("Completed"), "check"),
    "failed": Word(_("Failed"), "triangle-alert", "danger"),
    "stopped": Word(_("Stopped"), "circle-stop"),
    "interrupted": Word(_("Interrupted"), "unplug", "danger"),
    "absorbed": Word(_("Steered in"), "list-end"),
    "held": Word(_("Held for an operator"), "hand", "catch"),
}

SESSION_STATES: Final = {
    "running": Word(_("Running"), "dot", "live"),
    "idle": Word(_("Idle"), "check"),
    "ended": Word(_("Ended"), "archive"),
    "deleted": Word(_("Deleted"), "ban", "danger"),
}

SESSION_FILTERS: Final = {
    "running": _("Running"),
    "waiting": _("Waiting for approval"),
    "failed": _("Failed"),
    "idle": _("Idle"),
    "ended": _("Ended"),
    "deleted": _("Deleted"),
}
"""What the list of sessions can be narrowed to, as its address says it."""

ERRORS: Final = {
    "model_unavailable": _("model not reachable"),
    "model_auth": _("key refused"),
    "model_rate_limited": _("rate limit"),
    "model_timeout": _("model too slow"),
    "model_refused": _("content filter"),
    "model_invalid": _("request not understood"),
    "context_full": _("context full"),
    "interrupted": _("server stopped"),
    "storage": _("storage"),
    "limit": _("limit reached"),
    "internal": _("fault"),
}

KINDS: Final[dict[str, Word]] = {
    Message.Kind.USER: Word(_("User"), "user"),
    Message.Kind.ASSISTANT: Word(_("Assistant"), "bot"),
    Message.Kind.TOOL: Word(_("Tool result"), "wrench"),
    Message.Kind.OPERATOR: Word(_("Operator, a person"), "headset", "catch"),
    Message.Kind.SYSTEM: Word(_("System"), "scroll-text"),
    Message.Kind.NOTICE: Word(_("Notice"), "info"),
    Message.Kind.SUMMARY: Word(_("Summary"), "fold-vertical"),
    Message.Kind.NOTE: Word(_("Private note"), "sticky-note", "wait"),
    Message.Kind.SESSION_META: Word(_("Session facts"), "settings"),
}

MESSAGE_STATES: Final[dict[str, Word]] = {
    Message.State.ACTIVE: Word(_("Active"), "check"),
    Message.State.COMPACTED: Word(_("Compacted"), "fold-vertical"),
    Message.State.SUPERSEDED: Word(_("Superseded"), "replace"),
    Message.State.BRANCHED: Word(_("Branched"), "git-branch"),
    Message.State.HIDDEN: Word(_("Hidden"), "eye-off", "danger"),
}

TOKEN_STATES: Final = {
    "live": Word(_("Live"), "check", "ok"),
    "expired": Word(_("Expired"), "clock"),
    "revoked": Word(_("Revoked"), "ban", "danger"),
}

FINISHES: Final = {
    "length": _("Cut by the model's length limit"),
    "content_filter": _("Cut by the provider's content filter"),
    "refused": _("The model declined"),
    "stopped": _("Stopped here"),
    "interrupted": _("Interrupted here"),
    "error": _("Failed here"),
}
"""How an answer ended that did not end by itself."""


def word_of(words: dict[str, Word], value: str) -> Word:
    """The word of a stored value; a value of a later version reads as it is stored."""
    return words.get(value) or Word(value)
