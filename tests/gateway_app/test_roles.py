"""A new site has groups for its staff; whoever runs it changes them for good."""

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command

from gateway_app.services.roles import ROLES, ensure_roles
from tests.factories import StaffFactory
from tests.gateway_app.admin.conftest import logged_in

pytestmark = pytest.mark.django_db


def permissions_of(group: Group) -> set[str]:
    named = group.permissions.values_list("content_type__app_label", "codename")
    return {f"{app_label}.{codename}" for app_label, codename in named}


def test_it_makes_the_groups_with_the_schema() -> None:
    groups = {group.name: permissions_of(group) for group in Group.objects.all()}
    assert groups == {name: set(permissions) for name, permissions in ROLES.items()}


def test_it_keeps_what_was_edited_and_removed() -> None:
    Group.objects.get(name="Agent editors").delete()
    group = Group.objects.get(name="Operators")
    group.permissions.clear()
    ensure_roles()
    call_command("migrate", verbosity=0)
    assert {one.name: permissions_of(one) for one in Group.objects.all()} == {"Operators": set()}


@pytest.mark.parametrize(
    ("name", "opens", "refuses"),
    [
        ("Operators", ["board/", "sessions_app/session/", "gateway_app/turn/"],
         ["gateway_app/agent/add/", "gateway_app/apitoken/", "auth/user/"]),
        ("Agent editors", ["gateway_app/agent/add/", "board/"],
         ["sessions_app/session/", "gateway_app/apitoken/", "auth/group/"]),
    ],
)  # fmt: skip
def test_it_opens_to_a_group_what_it_needs(name, opens, refuses) -> None:
    user = StaffFactory()
    user.groups.add(Group.objects.get(name=name))
    client = logged_in(user)
    assert {path: client.get(f"/admin/{path}").status_code for path in opens} == dict.fromkeys(
        opens, 200
    )
    assert {path: client.get(f"/admin/{path}").status_code for path in refuses} == dict.fromkeys(
        refuses, 403
    )
