"""Rows for tests, as the database holds them after its triggers ran.

Every field has a fitting default; name only what the test is about:
`MessageFactory(session=session, kind="assistant", text="Hello")`.
"""

import hashlib
from datetime import timedelta
from typing import Any

import factory
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import models
from django.utils import timezone
from factory.django import DjangoModelFactory, Password

from gateway_app.models import Agent, AgentVersion, ApiToken, Event, FrozenPrompt, LoginLink, Turn
from sessions_app.keys import web_key
from sessions_app.models import Message, Session, new_id


class _AsStored(DjangoModelFactory):
    """Reads the row back, because triggers and database defaults write columns of their own."""

    class Meta:
        abstract = True
        skip_postgeneration_save = True

    @classmethod
    def _create(cls, model_class: type[models.Model], *args: Any, **kwargs: Any) -> models.Model:
        row = super()._create(model_class, *args, **kwargs)
        row.refresh_from_db()
        return row


class UserFactory(DjangoModelFactory):
    """An active person. `permissions=["sessions_app.view_session"]` grants by name."""

    class Meta:
        model = get_user_model()
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person-{n}")
    email = factory.LazyAttribute(lambda user: f"{user.username}@example.org")
    password = Password("secret")

    @factory.post_generation
    def permissions(self, create: bool, names: list[str] | None, **_: Any) -> None:
        if not create or not names:
            return
        for name in names:
            app_label, codename = name.split(".")
            self.user_permissions.add(
                Permission.objects.get(content_type__app_label=app_label, codename=codename)
            )


class StaffFactory(UserFactory):
    """May enter the admin, and see there what `permissions` allow: at first nothing."""

    username = factory.Sequence(lambda n: f"staff-{n}")
    is_staff = True


class SuperuserFactory(StaffFactory):
    username = factory.Sequence(lambda n: f"root-{n}")
    is_superuser = True


class SessionFactory(_AsStored):
    """A live web session with an owner, without messages."""

    class Meta:
        model = Session

    id = factory.LazyFunction(new_id)
    owner = factory.SubFactory(UserFactory)
    title = factory.Sequence(lambda n: f"Conversation {n}")
    key = factory.LazyAttribute(
        lambda session: web_key("main", session.owner.pk if session.owner else 0, session.id)
    )


class MessageFactory(_AsStored):
    """A row in a block of its own; `text` makes its parts unless `parts` are given."""

    class Meta:
        model = Message

    class Params:
        text = factory.Sequence(lambda n: f"Message {n}")

    session = factory.SubFactory(SessionFactory)
    kind = "user"
    parts = factory.LazyAttribute(lambda message: [{"type": "text", "text": message.text}])


class TurnFactory(_AsStored):
    """A completed turn whose request reused a warm agent; `session`'s owner is its author."""

    class Meta:
        model = Turn

    id = factory.LazyFunction(new_id)
    session = factory.SubFactory(SessionFactory)
    state = "completed"
    author = factory.SelfAttribute("session.owner")
    client_message_id = factory.Sequence(lambda n: f"sent-{n}")
    body_hash = factory.LazyAttribute(
        lambda turn: hashlib.sha256(str(turn.client_message_id).encode()).hexdigest()
    )
    content = factory.LazyFunction(lambda: [{"type": "text", "text": "Hello"}])
    accepted_seq = factory.Sequence(lambda n: n + 1)
    block = factory.Sequence(lambda n: n + 1)
    generation = 1
    runs = 1
    verdict = "reuse"
    baseline = 1
    revision = 1
    model = "openai:gpt-test"
    finish = "stop"
    input_tokens = 200
    cached_tokens = 150
    output_tokens = 20
    ttft_ms = 120
    duration_ms = 900
    started_at = factory.LazyFunction(timezone.now)
    finished_at = factory.LazyFunction(timezone.now)


class QueuedTurnFactory(TurnFactory):
    """Accepted and not begun: nothing of a run is known yet."""

    state = "queued"
    block = None
    generation = 0
    runs = 0
    verdict = ""
    baseline = revision = None
    model = finish = ""
    input_tokens = cached_tokens = output_tokens = None
    ttft_ms = duration_ms = None
    started_at = finished_at = None


class AgentFactory(_AsStored):
    """An agent with its version 1: `version__model="openai:x"` sets that version's fields."""

    class Meta:
        model = Agent

    slug = factory.Sequence(lambda n: f"agent-{n}")
    name = factory.Sequence(lambda n: f"Agent {n}")

    @factory.post_generation
    def version(self, create: bool, given: Any, **fields: Any) -> None:
        if create and given is not False:
            AgentVersionFactory(agent=self, number=1, **fields)


class AgentVersionFactory(_AsStored):
    class Meta:
        model = AgentVersion

    agent = factory.SubFactory(AgentFactory, version=False)
    number = 1
    model = "openai:gpt-test"
    system_prompt = "You are a test."


class FrozenPromptFactory(_AsStored):
    class Meta:
        model = FrozenPrompt

    system_prompt = "You are a test."
    hash = factory.LazyAttribute(
        lambda prompt: hashlib.sha256(prompt.system_prompt.encode()).hexdigest()
    )


class EventFactory(DjangoModelFactory):
    """One flush of one event; `body` is `[[seq, event]]` as JSON text."""

    class Meta:
        model = Event

    session = factory.SubFactory(SessionFactory)
    seq = factory.Sequence(lambda n: n + 1)
    body = factory.LazyAttribute(
        lambda event: f'[[{event.seq},{{"type":"CUSTOM","name":"hermes.test","value":{{}}}}]]'
    )


class ApiTokenFactory(_AsStored):
    """A token row whose text nobody knows; use `gateway_app.credentials` for one that opens."""

    class Meta:
        model = ApiToken

    user = factory.SubFactory(UserFactory)
    name = factory.Sequence(lambda n: f"Token {n}")
    prefix = factory.Sequence(lambda n: f"hermes_{n:05d}")
    hash = factory.Sequence(lambda n: hashlib.sha256(f"token {n}".encode()).hexdigest())


class LoginLinkFactory(_AsStored):
    class Meta:
        model = LoginLink

    user = factory.SubFactory(UserFactory)
    hash = factory.Sequence(lambda n: hashlib.sha256(f"link {n}".encode()).hexdigest())
    expires_at = factory.LazyFunction(lambda: timezone.now() + timedelta(minutes=15))
