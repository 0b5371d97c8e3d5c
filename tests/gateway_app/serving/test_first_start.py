"""The first person of an installation."""

import pytest
from django.contrib.auth.models import User

from gateway_app.serving.first_start import ensure_admin
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_it_makes_an_admin_without_a_password_where_nobody_is() -> None:
    admin = ensure_admin(None)
    assert admin == User.objects.get()
    assert admin.is_superuser
    assert admin.is_staff
    assert not admin.has_usable_password()


def test_it_names_the_admin_again_until_there_is_a_password() -> None:
    admin = ensure_admin(None)
    assert ensure_admin(None) == admin
    assert admin is not None
    admin.set_password("three warm feathers")
    admin.save()
    assert ensure_admin(None) is None
    assert User.objects.count() == 1


def test_it_sets_the_given_password_once() -> None:
    assert ensure_admin("three warm feathers") is None
    assert ensure_admin("another") is None
    assert User.objects.get(username="admin").check_password("three warm feathers")


def test_it_sets_the_given_password_of_an_admin_who_has_none() -> None:
    ensure_admin(None)
    assert ensure_admin("three warm feathers") is None
    assert User.objects.get().check_password("three warm feathers")


def test_it_makes_nobody_where_somebody_is() -> None:
    UserFactory(username="ann")
    assert ensure_admin(None) is None
    assert ensure_admin("three warm feathers") is None
    assert [user.username for user in User.objects.all()] == ["ann"]


def test_it_invites_no_admin_who_lost_the_rank() -> None:
    ensure_admin(None)
    User.objects.update(is_superuser=False)
    assert ensure_admin(None) is None
