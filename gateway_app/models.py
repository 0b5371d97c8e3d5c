"""Agents, frozen prompts, turns, the event log and the doors' credentials."""

from typing import Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from sessions_app.fields import JSONTextField
from sessions_app.models import Session, new_id

DEFAULT_PROMPT: Final = "You are a helpful assistant. Answer clearly and briefly."


class Agent(models.Model):
    """A profile that people talk to; what it says and uses is in its versions."""

    slug = models.SlugField(_("slug"), max_length=64, unique=True)
    name = models.CharField(_("name"), max_length=100)
    is_default = models.BooleanField(_("default agent"), default=False)
    current_version = models.PositiveIntegerField(_("current version"), default=1, editable=False)
    created_at = models.DateTimeField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="agent_one_default"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AgentVersion(models.Model):
    """One immutable version of an agent. `model` is `provider:model`; empty: the site's default."""

    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="versions", verbose_name=_("agent")
    )
    number = models.PositiveIntegerField(
        _("number"),
    )
    model = models.CharField(_("model"), max_length=128, blank=True)
    fallback_models = models.TextField(
        _("fallback models"),
        blank=True,
        db_default="",
        default="",
        help_text=_("one `provider:model` a line, in order"),
    )
    tools = models.TextField(
        blank=True, db_default="", default="", help_text=_("one tool's name a line")
    )
    system_prompt = models.TextField(_("system prompt"), blank=True)
    temperature = models.FloatField(_("temperature"), null=True, blank=True)
    max_output_tokens = models.PositiveIntegerField(_("max output tokens"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("made by"),
    )

    class Meta:
        verbose_name = _("agent version")
        verbose_name_plural = _("agent versions")
        constraints = [
            models.UniqueConstraint(fields=["agent", "number"], name="agent_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.agent.slug} {self.number}"


class FrozenPrompt(models.Model):
    """A system prompt and tool schemas as sent, once per content; sessions hold the hash."""

    hash = models.CharField(max_length=64, primary_key=True)
    system_prompt = models.TextField()
    tool_schemas = models.TextField(default="[]")
    created_at = models.DateTimeField(db_default=Now())


class Turn(models.Model):
    """One accepted message on its way to a final answer."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        WAITING_APPROVAL = "waiting_approval"
        COMPLETED = "completed"
        FAILED = "failed"
        STOPPED = "stopped"
        INTERRUPTED = "interrupted"
        ABSORBED = "absorbed"
        HELD = "held"

    id = models.UUIDField(_("id"), primary_key=True, default=new_id)
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="turns", verbose_name=_("session")
    )
    state = models.CharField(_("state"), max_length=20, choices=State)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("author"),
    )
    client_message_id = models.CharField(max_length=128, null=True)
    body_hash = models.CharField(max_length=64)
    content = JSONTextField(
        _("message"), help_text=_("the inbound parts; null for a retry"), null=True
    )
    when_busy = models.CharField(_("when busy"), max_length=12, db_default="queue")
    retry_of = models.UUIDField(_("retry of"), null=True)
    edit_of = models.UUIDField(null=True, help_text=_("the message that `content` replaces"))
    priority = models.SmallIntegerField(
        _("priority"), db_default=0, help_text=_("higher runs first")
    )
    accepted_seq = models.BigIntegerField(
        _("accepted at event"), help_text=_("the log's seq at accept: the queue's order")
    )
    created_at = models.DateTimeField(_("created"), db_default=Now())
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    # the run
    block = models.BigIntegerField(_("block"), null=True)
    generation = models.BigIntegerField(_("generation"), db_default=0)
    runs = models.PositiveSmallIntegerField(_("runs"), db_default=0)
    lease_owner = models.CharField(_("lease owner"), max_length=64, blank=True, db_default="")
    stop_requested_at = models.DateTimeField(_("stop requested"), null=True)
    # what the guard said
    verdict = models.CharField(_("verdict"), max_length=16, blank=True, db_default="")
    reason = models.CharField(_("reason"), max_length=24, blank=True, db_default="")
    baseline = models.BigIntegerField(_("baseline"), null=True)
    revision = models.BigIntegerField(_("revision"), null=True)
    worst_verdict = models.CharField(_("worst verdict"), max_length=16, blank=True, db_default="")
    worst_reason = models.CharField(_("worst reason"), max_length=24, blank=True, db_default="")
    # the record of the last request, by which a cold process tells reload from rebuild
    sent_revision = models.BigIntegerField(_("sent revision"), null=True)
    sent_rows = models.IntegerField(_("sent rows"), null=True)
    sent_digest = models.CharField(_("sent digest"), max_length=64, blank=True, db_default="")
    sent_signature = models.CharField(_("sent signature"), max_length=64, blank=True, db_default="")
    step_sent = models.TextField(
        blank=True,
        db_default="",
        default="",
        help_text=_("while tools run: the message that called them, and its sent parts"),
    )
    # the outcome
    model = models.CharField(_("model"), max_length=128, blank=True, db_default="")
    fallback_from = models.CharField(
        _("instead of"),
        max_length=128,
        blank=True,
        db_default="",
        help_text=_("the model that could not be had, if another answered"),
    )
    finish = models.CharField(_("finish"), max_length=24, blank=True, db_default="")
    error_code = models.CharField(_("error code"), max_length=32, blank=True, db_default="")
    error_message = models.CharField(_("error message"), max_length=500, blank=True, db_default="")
    input_tokens = models.IntegerField(_("input tokens"), null=True)
    cached_tokens = models.IntegerField(_("cached tokens"), null=True)
    output_tokens = models.IntegerField(_("output tokens"), null=True)
    cache_write_tokens = models.IntegerField(_("cache write tokens"), null=True)
    context_tokens = models.IntegerField(
        _("context tokens"),
        null=True,
        help_text=_("input of the last request alone: how full the model's window was"),
    )
    cost_usd = models.DecimalField(_("cost"), max_digits=14, decimal_places=8, null=True)
    ttft_ms = models.IntegerField(_("first token"), null=True)
    duration_ms = models.IntegerField(_("whole turn"), null=True)
    log_folded = models.BooleanField(db_default=False)

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [
            models.UniqueConstraint(fields=["author", "client_message_id"], name="turn_sent_once"),
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(state__in=["running", "waiting_approval"]),
                name="turn_one_running",
            ),
        ]
        indexes = [
            models.Index(
                fields=["session", "-priority", "accepted_seq"],
                condition=models.Q(state__in=["queued", "held"]),
                name="turn_queue",
            ),
            models.Index(
                fields=["state"],
                condition=models.Q(state__in=["queued", "running"]),
                name="turn_open",
            ),
            models.Index(
                fields=["session", "-generation"],
                condition=models.Q(sent_revision__isnull=False),
                name="turn_sent",
            ),
            models.Index(fields=["session", "created_at"], name="turn_of_session"),
            models.Index(fields=["-created_at"], name="turn_recent"),
            models.Index(
                fields=["finished_at"],
                condition=models.Q(log_folded=False, finished_at__isnull=False),
                name="turn_unfolded",
            ),
            models.Index(
                fields=["-created_at"], condition=models.Q(state="failed"), name="turn_failed"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Event(models.Model):
    """One flush of one run: consecutive events of a session, as `[[seq, event], ...]`.

    `seq` is the last event's. Rows of a session never overlap, so their order is the log's order.
    """

    pk = models.CompositePrimaryKey("session_id", "seq")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False, related_name="+")
    seq = models.BigIntegerField()
    turn_id = models.UUIDField(null=True)
    generation = models.BigIntegerField(db_default=0)
    folded = models.BooleanField(db_default=False)
    body = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            # without the rows of a run that was not folded yet: a flush writes no index
            models.Index(
                fields=["created_at"],
                condition=models.Q(folded=True) | models.Q(turn_id__isnull=True),
                name="event_old",
            )
        ]


class ReadMark(models.Model):
    """How far a person has seen a session: the transcript's revision then. It only rises."""

    pk = models.CompositePrimaryKey("user_id", "session_id")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False, related_name="+"
    )
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    revision = models.BigIntegerField()


class ApiToken(models.Model):
    """A hashed API token: its text is shown once, when it is made."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="api_tokens",
        verbose_name=_("user"),
    )
    name = models.CharField(_("name"), max_length=100, blank=True)
    prefix = models.CharField(
        _("prefix"), max_length=16, help_text=_("its first characters, to tell it apart")
    )
    hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return self.name or self.prefix


class LoginLink(models.Model):
    """A one-time login link, stored hashed."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class LoginTries(models.Model):
    """How often a password was tried by one name or address; `key` is a hash of it."""

    key = models.CharField(max_length=64, primary_key=True)
    tries = models.PositiveIntegerField(db_default=0)
    until = models.DateTimeField(db_default=Now(), db_index=True)


class JobLease(models.Model):
    """Which process does a housekeeping job now, and until when."""

    name = models.CharField(max_length=40, primary_key=True)
    owner = models.CharField(max_length=64, blank=True, db_default="")
    expires_at = models.DateTimeField(db_default=Now())


class Presence(models.Model):
    """What a serving process tells of itself at its beat. A row that nobody renews is a dead one's.

    `owner` is its name on leases. An operator's order to evict raises `evict_asked`; the process
    answers with that number in `evict_done`, and with how many agents it dropped.
    """

    owner = models.CharField(max_length=64, primary_key=True)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now(), db_index=True)
    cached_agents = models.PositiveIntegerField(db_default=0)
    cached_agents_limit = models.PositiveIntegerField(db_default=0)
    cached_bytes = models.BigIntegerField(db_default=0)
    baselines = models.TextField(
        db_default="{}", help_text="JSON: session id -> revision, of the agents used last"
    )
    evict_asked = models.PositiveIntegerField(db_default=0)
    evict_done = models.PositiveIntegerField(db_default=0)
    evicted = models.PositiveIntegerField(db_default=0)

    def __str__(self) -> str:
        return self.owner
