"""Sessions and their transcripts: the rows, and the rules that the database itself keeps.

The clock columns (`revision`, `removed_revision`, `incarnation`, `message_count`, `next_block` and
`Message.revision`) belong to the triggers of `clock.py`; no code here writes them.
"""

import uuid
from typing import Final

import uuid_utils
from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from sessions_app.fields import IsJSON, JSONTextField, RandomUUID

BLOCK: Final = 1_000_000
"""Positions in one block; `position = block * BLOCK + n`, n from 1."""


def new_id() -> uuid.UUID:
    """A UUIDv7: ids made by services sort by the time they were made."""
    return uuid.UUID(int=uuid_utils.uuid7().int)


class SessionQuerySet(models.QuerySet["Session"]):
    def live(self) -> "SessionQuerySet":
        """Sessions that were not deleted."""
        return self.filter(deleted_at__isnull=True)

    def owned_by(self, user_id: int) -> "SessionQuerySet":
        return self.live().filter(owner_id=user_id)


class Session(models.Model):
    """One durable conversation. A hot row: it carries the clock, the lease and the log's seq."""

    class State(models.TextChoices):
        ACTIVE = "active"
        ENDED = "ended"

    id = models.UUIDField(_("id"), primary_key=True, default=new_id, db_default=RandomUUID())
    key = models.CharField(_("key"), max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("owner"),
    )
    title = models.CharField(_("title"), max_length=200, blank=True, db_default="")
    agent = models.CharField(_("agent"), max_length=64, db_default="main")
    agent_version = models.PositiveIntegerField(
        _("agent version"), db_default=0, help_text=_("0: not yet fixed")
    )
    model = models.CharField(_("model"), max_length=128, blank=True, db_default="")
    prompt_hash = models.CharField(_("prompt hash"), max_length=64, blank=True, db_default="")
    state = models.CharField(_("state"), max_length=16, choices=State, db_default=State.ACTIVE)
    pinned = models.BooleanField(_("pinned"), db_default=False)
    archived = models.BooleanField(_("archived"), db_default=False)
    create_id = models.CharField(max_length=128, null=True, blank=True)
    create_hash = models.CharField(
        max_length=64, null=True, blank=True, help_text=_("of what was asked for with create_id")
    )
    created_at = models.DateTimeField(_("created"), db_default=Now())
    updated_at = models.DateTimeField(_("updated"), db_default=Now())
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True)
    # the transcript clock, kept by triggers
    revision = models.BigIntegerField(_("revision"), db_default=0, editable=False)
    removed_revision = models.BigIntegerField(_("last removal"), db_default=0, editable=False)
    incarnation = models.BigIntegerField(_("incarnation"), db_default=0, editable=False)
    message_count = models.BigIntegerField(_("messages"), db_default=0, editable=False)
    next_block = models.BigIntegerField(_("next block"), db_default=1, editable=False)
    # the event log and the run that holds the session
    event_seq = models.BigIntegerField(_("last event"), db_default=0, editable=False)
    run_generation = models.BigIntegerField(_("run generation"), db_default=0, editable=False)
    lease_owner = models.CharField(
        _("lease owner"), max_length=64, blank=True, db_default="", editable=False
    )
    lease_expires_at = models.DateTimeField(
        _("lease expires"), null=True, blank=True, editable=False
    )
    open_block = models.BigIntegerField(
        _("open block"),
        db_default=0,
        editable=False,
        help_text=_("block of the turn that runs or waits; 0: none"),
    )
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    claim_expires_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = SessionQuerySet.as_manager()

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        constraints = [
            models.UniqueConstraint(
                fields=["key"],
                condition=models.Q(state="active", deleted_at__isnull=True),
                name="session_one_current_per_key",
            ),
            models.UniqueConstraint(fields=["owner", "create_id"], name="session_create_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=["active", "ended"]), name="session_state_known"
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "archived", "-updated_at", "-id"], name="session_list"),
            models.Index(
                fields=["owner", "archived", "-updated_at", "-id"],
                condition=models.Q(pinned=True),
                name="session_pinned",
            ),
            models.Index(fields=["key"], name="session_key"),
            models.Index(fields=["-updated_at", "-id"], name="session_recent"),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="session_deleted",
            ),
        ]

    def __str__(self) -> str:
        return self.title or str(self.id)


class Message(models.Model):
    """One row of a transcript. `kind` and `state` decide who sees it; `position` orders it."""

    class Kind(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"
        OPERATOR = "operator"
        SYSTEM = "system"
        NOTICE = "notice"
        SUMMARY = "summary"
        NOTE = "note"
        SESSION_META = "session_meta"

    class State(models.TextChoices):
        ACTIVE = "active"
        COMPACTED = "compacted"
        SUPERSEDED = "superseded"
        BRANCHED = "branched"
        HIDDEN = "hidden"

    id = models.UUIDField(primary_key=True, default=new_id, db_default=RandomUUID())
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="messages")
    position = models.BigIntegerField(db_default=0, help_text="0: the next block")
    kind = models.CharField(max_length=16, choices=Kind)
    state = models.CharField(max_length=16, choices=State, db_default=State.ACTIVE)
    parts = JSONTextField()
    sent_parts = JSONTextField(null=True, blank=True)
    parent = models.ForeignKey(
        "self",
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    turn_id = models.UUIDField(null=True, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="+",
    )
    client_message_id = models.CharField(max_length=128, null=True, blank=True)
    finish = models.CharField(max_length=24, null=True, blank=True)
    feedback = models.SmallIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    revision = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "position"],
                condition=models.Q(state="active"),
                name="message_position_once",
            ),
            models.CheckConstraint(condition=models.Q(position__gte=0), name="message_position"),
            models.CheckConstraint(condition=IsJSON("parts"), name="message_parts_json"),
            models.CheckConstraint(
                condition=models.Q(sent_parts__isnull=True) | models.Q(IsJSON("sent_parts")),
                name="message_sent_json",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    kind__in=[
                        "user", "assistant", "tool", "operator", "system",
                        "notice", "summary", "note", "session_meta",
                    ]
                ),
                name="message_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    state__in=["active", "compacted", "superseded", "branched", "hidden"]
                ),
                name="message_state_known",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["session", "position", "id"], name="message_order"),
            models.Index(fields=["session", "revision"], name="message_changed"),
            models.Index(
                fields=["session", "parent"],
                condition=models.Q(state="branched"),
                name="message_branches",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.position}"


MODEL_KINDS: Final = frozenset(
    {"user", "assistant", "tool", "operator", "system", "notice", "summary"}
)
"""Kinds that a model is sent, while their row is active."""

PERSON_KINDS: Final = frozenset({"user", "assistant", "tool", "operator", "notice", "summary"})
"""Kinds that a person's client is sent."""

VISIBLE_FIELDS: Final = ("session", "position", "kind", "state", "parts", "sent_parts")
"""Fields whose change moves the clock: together they decide what a model is sent."""

SILENT_FIELDS: Final = (
    "id", "parent", "turn_id", "author", "client_message_id", "finish", "feedback",
    "created_at", "revision",
)  # fmt: skip
"""Every other field of Message; the system check demands that each field stands in one list."""
