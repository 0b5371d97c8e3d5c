"""The groups that a new site has for its staff. Whoever runs it changes them as they like."""

from typing import Final

from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q

ROLES: Final = {
    "Operators": (
        "sessions_app.view_session",
        "sessions_app.delete_session",
        "gateway_app.view_turn",
        "gateway_app.change_turn",
        "gateway_app.view_agent",
    ),
    "Agent editors": (
        "gateway_app.view_agent",
        "gateway_app.add_agent",
        "gateway_app.change_agent",
        "gateway_app.view_turn",
    ),
}
"""Group -> permissions. No group lets anybody make API tokens or change people."""


def ensure_roles() -> None:
    """The groups exist, unless the site has groups already: then it has made up its mind."""
    if Group.objects.exists():
        return
    with transaction.atomic():
        for name, permissions in ROLES.items():
            named = Q()
            for permission in permissions:
                app_label, _, codename = permission.partition(".")
                named |= Q(content_type__app_label=app_label, codename=codename)
            group = Group.objects.create(name=name)
            group.permissions.set(Permission.objects.filter(named))
