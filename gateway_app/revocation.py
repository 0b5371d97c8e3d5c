"""Somebody's credentials may have ended: every process looks at once, wherever it happened."""

from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import post_delete, post_save

from gateway_app import wakeups


class Watch(Protocol):
    """Who checks the sockets of a process, and tells other processes to."""

    def revoke_from_thread(self, user_id: int) -> None: ...


_watches: WeakSet[Watch] = WeakSet()


def register_watch(watch: Watch) -> None:
    """From now on it hears of this process's revocations."""
    _watches.add(watch)


def forget_watch(watch: Watch) -> None:
    _watches.discard(watch)


def announce_revocation(user_id: int) -> None:
    """After the commit this person's sockets are checked, in all processes."""
    transaction.on_commit(partial(_announce, user_id), robust=True)


def _announce(user_id: int) -> None:
    watches = list(_watches)
    for watch in watches:
        watch.revoke_from_thread(user_id)
    if not watches:  # a command: it has no sockets of its own
        wakeups.send_revoked(user_id)


def _user_changed(instance: User, update_fields: frozenset[str] | None = None, **_: Any) -> None:
    """Disabled, another password, deleted. Logging in only notes when."""
    if update_fields != frozenset({"last_login"}):
        announce_revocation(instance.pk)


def _web_session_gone(instance: Session, **_: Any) -> None:
    """Logged out. The signal of a logout comes before the web session is gone; this one after."""
    if user_id := instance.get_decoded().get("_auth_user_id"):
        announce_revocation(int(user_id))


def connect() -> None:
    """Connects the receivers: it is Django's own forms and views that change these rows."""
    post_save.connect(_user_changed, sender=User, dispatch_uid="gateway_app.user_saved")
    post_delete.connect(_user_changed, sender=User, dispatch_uid="gateway_app.user_deleted")
    post_delete.connect(_web_session_gone, sender=Session, dispatch_uid="gateway_app.logged_out")
