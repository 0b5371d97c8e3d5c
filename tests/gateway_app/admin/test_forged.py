"""What nobody's page sends, sent by hand: the admin refuses it, and never breaks off."""

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import (
    ApiTokenFactory,
    MessageFactory,
    SessionFactory,
    SuperuserFactory,
    TurnFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)

NAMES = [
    "o", "p", "q", "e", "all", "_facets", "_popup", "_to_field", "_changelist_filters", "nonsense",
]  # fmt: skip
LOOKUPS = ["", "__in", "__gt", "__isnull", "__exact", "__year", "__month", "__day", "__range",
           "__date", "__contains", "__nonsense", "__id", "__id__in", "__pk"]  # fmt: skip

values = st.sampled_from([
    "", "x", "1", "0", "-1", "1,x", "1.-2", "x.y", "9" * 30, "-" + "9" * 30, "1e999", "nan", "None",
    "True", "[]", "2024-13-45", "2024-01-01", "0000-00-00", "~", "2024-01-01T00:00~x", "é", "'",
    "%", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "00000000-0000-0000-0000-000000000000",
]) | st.text(max_size=8)  # fmt: skip


def fields(model: Any) -> list[str]:
    names = [field.name for field in model._meta.get_fields()]
    chosen = [
        getattr(one, "parameter_name", one) for one in admin.site._registry[model].list_filter
    ]
    return [*names, "pk", *(name for name in chosen if isinstance(name, str))]


@pytest.fixture
def root() -> Client:
    user = SuperuserFactory()
    ApiTokenFactory(user=user)
    MessageFactory(session=TurnFactory(session=SessionFactory(owner=user)).session)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


forged = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=40,
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label_lower)
@forged
@given(data=st.data())
def test_it_refuses_a_forged_query(root: Client, model: Any, data: st.DataObject) -> None:
    looked = st.builds(
        lambda *of: "".join(of), st.sampled_from(fields(model)), st.sampled_from(LOOKUPS)
    )
    query = data.draw(st.dictionaries(st.sampled_from(NAMES) | looked, values, max_size=3))
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    answer = root.get(path, query)
    assert answer.status_code < 500, query


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label_lower)
@forged
@given(
    chosen=st.lists(values, max_size=3),
    action=st.sampled_from(["delete_selected", "restore", "revoke", "apply", "nonsense", ""]),
    more=st.dictionaries(st.sampled_from(["index", "select_across", "post", "_save"]), values),
)
def test_it_refuses_a_forged_choice(
    root: Client, model: Any, chosen: list[str], action: str, more: dict[str, str]
) -> None:
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    answer = root.post(path, {"action": action, "_selected_action": chosen, **more})
    assert answer.status_code < 500, (action, chosen, more)


def test_it_says_that_a_value_cannot_be_used(root: Client) -> None:
    page = root.get("/admin/auth/user/", {"id__range": "1"}, follow=True)
    assert page.redirect_chain == [("/admin/auth/user/", 302)]
    assert "cannot be used here" in page.text
