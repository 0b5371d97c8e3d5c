"""What proves who somebody is: API tokens, web sessions, one-time login links.

Secrets are random, shown once and stored as SHA-256: with 256 bits of entropy a slow hash adds
nothing. A credential in a socket's scope says how to check it again (`credential_valid`).
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from gateway_app.models import ApiToken, LoginLink
from gateway_app.revocation import announce_revocation

TOKEN_PREFIX: Final = "hms_"
SHOWN_CHARACTERS: Final = len(TOKEN_PREFIX) + 8
LINK_LIFE: Final = timedelta(minutes=15)
LAST_USED_EVERY: Final = timedelta(minutes=1)

Credential = dict[str, Any]
"""`{"kind": "token", "token_id"}` or `{"kind": "cookie", "session_key", "auth_hash"}`."""


@dataclass(frozen=True, slots=True)
class Admission:
    """An active user, and the credential by which they came."""

    user: User
    credential: Credential


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


# --- API tokens ---


def create_token(*, user: User, name: str = "", expires_at: datetime | None = None) -> str:
    """A new token of `user`: its only copy, for only its hash is stored."""
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    ApiToken.objects.create(
        user=user,
        name=name,
        prefix=text[:SHOWN_CHARACTERS],
        hash=_hash(text),
        expires_at=expires_at,
    )
    return text


def revoke_token(token: ApiToken) -> None:
    """The token opens nothing any more; the first revocation's time stays."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    announce_revocation(token.user_id)


def live_tokens() -> QuerySet[ApiToken]:
    """Tokens that open a door now: neither revoked nor expired, of an active user."""
    alive = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ApiToken.objects.filter(alive, revoked_at=None, user__is_active=True)


def admit_token(text: str) -> Admission | None:
    """The bearer of a live token. Its `last_used_at` moves at most once a minute."""
    digest = _hash(text)
    token = live_tokens().select_related("user").filter(hash=digest).first()
    if token is None or not constant_time_compare(token.hash, digest):
        return None
    now = timezone.now()
    if token.last_used_at is None or token.last_used_at <= now - LAST_USED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return Admission(token.user, {"kind": "token", "token_id": token.pk})


def authenticate_token(text: str) -> User | None:
    """The active user whose live token this is."""
    admission = admit_token(text)
    return admission.user if admission else None


# --- web sessions ---


def admit_session(session_key: str) -> Admission | None:
    """The active user logged in by this web session, by the rules of Django's own get_user."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active:
        return None
    auth_hash = user.get_session_auth_hash()
    return Admission(user, {"kind": "cookie", "session_key": session_key, "auth_hash": auth_hash})


def credential_valid(credential: Credential, user_id: int) -> bool:
    """The credential still admits this user: not logged out, revoked, expired or made inactive."""
    if credential["kind"] == "token":
        return live_tokens().filter(pk=credential["token_id"], user_id=user_id).exists()
    admission = admit_session(credential["session_key"])
    return (
        admission is not None
        and admission.user.pk == user_id
        and constant_time_compare(admission.credential["auth_hash"], credential["auth_hash"])
    )


def credentials_valid(held: Sequence[tuple[Credential, int]]) -> list[bool]:
    """Which of these (credential, user id) are still valid; tokens by one statement for all."""
    ids = {credential["token_id"] for credential, _ in held if credential["kind"] == "token"}
    tokens = set(live_tokens().filter(pk__in=ids).values_list("pk", "user_id")) if ids else set()
    return [
        (credential["token_id"], user_id) in tokens
        if credential["kind"] == "token"
        else credential_valid(credential, user_id)
        for credential, user_id in held
    ]


# --- one-time login links ---


def create_login_link(user: User) -> str:
    """The secret of a new link that logs `user` in once, within LINK_LIFE. Dead links go."""
    now = timezone.now()
    LoginLink.objects.filter(expires_at__lt=now).delete()
    secret = secrets.token_urlsafe(32)
    LoginLink.objects.create(user=user, hash=_hash(secret), expires_at=now + LINK_LIFE)
    return secret


def _open_links(secret: str) -> QuerySet[LoginLink]:
    return LoginLink.objects.filter(
        hash=_hash(secret), used_at=None, expires_at__gt=timezone.now(), user__is_active=True
    )


def peek_login_link(secret: str) -> User | None:
    """Whom the link would log in; it stays unused."""
    link = _open_links(secret).select_related("user").first()
    return link.user if link else None


def redeem_login_link(secret: str) -> User | None:
    """Whom the link logs in; of any number of calls with one secret, one gets the user."""
    user, now = peek_login_link(secret), timezone.now()
    # one table only: with a join PostgreSQL would let two calls that wait for the row both win
    unused = LoginLink.objects.filter(hash=_hash(secret), used_at=None, expires_at__gt=now)
    return user if user and unused.update(used_at=now) else None
