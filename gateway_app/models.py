"""Agents, frozen prompts, turns, the event log and the doors' credentials."""

from typing import Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from sessions_app.fields import JSONTextField
from sessions_app.models import Session, new_id

DEFAULT_PROMPT: Final = "You are a helpful assistant. Answer clearly and briefly."


class Agent(models.Model):
    """A profile that people talk to; what it says and uses is in its versions."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=100)
    is_default = models.BooleanField(default=False)
    current_version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="agent_one_default"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AgentVersion(models.Model):
    """One immutable version of an agent. `model` is `provider:model`; empty: the site's default."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    model = models.CharField(max_length=128, blank=True)
    fallback_models = models.TextField(
        blank=True, db_default="", default="", help_text="one `provider:model` a line, in order"
    )
    tools = models.TextField(
        blank=True, db_default="", default="", help_text="one tool's name a line"
    )
    system_prompt = models.TextField(blank=True)
    temperature = models.FloatField(null=True, blank=True)
    max_output_tokens = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
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

    id = models.UUIDField(primary_key=True, default=new_id)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    state = models.CharField(max_length=20, choices=State)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    client_message_id = models.CharField(max_length=128, null=True)
    body_hash = models.CharField(max_length=64)
    content = JSONTextField(help_text="the inbound parts; null for a retry", null=True)
    when_busy = models.CharField(max_length=12, db_default="queue")
    retry_of = models.UUIDField(null=True)
    edit_of = models.UUIDField(null=True, help_text="the message that `content` replaces")
    priority = models.SmallIntegerField(db_default=0, help_text="higher runs first")
    accepted_seq = models.BigIntegerField(help_text="the log's seq at accept: the queue's order")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # the run
    block = models.BigIntegerField(null=True)
    generation = models.BigIntegerField(db_default=0)
    runs = models.PositiveSmallIntegerField(db_default=0)
    lease_owner = models.CharField(max_length=64, blank=True, db_default="")
    stop_requested_at = models.DateTimeField(null=True)
    # what the guard said
    verdict = models.CharField(max_length=16, blank=True, db_default="")
    reason = models.CharField(max_length=24, blank=True, db_default="")
    baseline = models.BigIntegerField(null=True)
    revision = models.BigIntegerField(null=True)
    worst_verdict = models.CharField(max_length=16, blank=True, db_default="")
    worst_reason = models.CharField(max_length=24, blank=True, db_default="")
    # the record of the last request, by which a cold process tells reload from rebuild
    sent_revision = models.BigIntegerField(null=True)
    sent_rows = models.IntegerField(null=True)
    sent_digest = models.CharField(max_length=64, blank=True, db_default="")
    sent_signature = models.CharField(max_length=64, blank=True, db_default="")
    # the outcome
    model = models.CharField(max_length=128, blank=True, db_default="")
    fallback_from = models.CharField(
        max_length=128,
        blank=True,
        db_default="",
        help_text="the model that could not be had, if another answered",
    )
    finish = models.CharField(max_length=24, blank=True, db_default="")
    error_code = models.CharField(max_length=32, blank=True, db_default="")
    error_message = models.CharField(max_length=500, blank=True, db_default="")
    input_tokens = models.IntegerField(null=True)
    cached_tokens = models.IntegerField(null=True)
    output_tokens = models.IntegerField(null=True)
    cache_write_tokens = models.IntegerField(null=True)
    context_tokens = models.IntegerField(
        null=True, help_text="input of the last request alone: how full the model's window was"
    )
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    ttft_ms = models.IntegerField(null=True)
    duration_ms = models.IntegerField(null=True)
    log_folded = models.BooleanField(db_default=False)

    class Meta:
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
        return f"{self.state} {self.id}"


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
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, help_text="its first characters, to tell it apart")
    hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API token"

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
