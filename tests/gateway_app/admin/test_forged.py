"""What nobody's page sends, sent by hand: the admin refuses it, and never breaks off."""

from collections.abc import Iterator
from importlib import reload
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import clear_url_caches, reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway_app.admin.tokens import ApiTokenAdmin
from gateway_app.models import ApiToken
from hermes_site import urls
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


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label_lower)
@forged
@given(data=st.data())
def test_it_refuses_a_forged_form(root: Client, model: Any, data: st.DataObject) -> None:
    sent = data.draw(st.dictionaries(st.sampled_from(fields(model) + NAMES), values, max_size=3))
    path = f"admin:{model._meta.app_label}_{model._meta.model_name}_add"
    for send in (root.get, root.post):
        assert send(reverse(path), sent).status_code < 500, (send, sent)


@pytest.mark.parametrize(
    ("path", "query", "form"),
    [
        ("auth/user/", {"id__range": "1"}, None),
        ("auth/group/", {"name__range": "abc"}, None),
        ("gateway_app/turn/", {"reason__range": "abc"}, None),
        ("sessions_app/session/", {"key__range": "abc"}, None),
        ("gateway_app/agent/", {"created_at__year": "0"}, None),
        ("gateway_app/apitoken/", {"created_at__year": "9" * 30}, None),
        ("auth/user/", {}, {"action": "delete_selected", "_selected_action": "x"}),
        ("auth/user/", {}, {"action": "delete_selected", "_selected_action": str(uuid4())}),
        ("gateway_app/apitoken/", {}, {"action": "revoke", "_selected_action": "9" * 30}),
        ("sessions_app/session/", {}, {"action": "delete_selected", "_selected_action": "1"}),
        ("gateway_app/apitoken/add/", {}, {"user": "x", "name": "laptop"}),
    ],
)
def test_it_says_that_a_value_cannot_be_used(
    root: Client, path: str, query: dict[str, str], form: dict[str, str] | None
) -> None:
    send = root.get if form is None else root.post
    page: Any = send(f"/admin/{path}", form or query, follow=True)
    assert page.redirect_chain == [(f"/admin/{path}", 302)]
    assert "cannot be used here" in page.text


@pytest.fixture
def faulty() -> Iterator[None]:
    """The list of tokens has a column and an action that break off, as a fault of ours would."""

    class Faulty(ApiTokenAdmin):
        actions = ("break_off",)
        list_display = ("broken",)

        @admin.action(description="Break off")
        def break_off(self, request: Any, queryset: Any) -> None:
            queryset.filter(pk__in=["x"]).count()

        @admin.display
        def broken(self, token: ApiToken) -> int:
            return int(token.name)

    admin.site.unregister(ApiToken)
    admin.site.register(ApiToken, Faulty)
    clear_url_caches()
    reload(urls)
    yield
    admin.site.unregister(ApiToken)
    admin.site.register(ApiToken, ApiTokenAdmin)
    clear_url_caches()
    reload(urls)


@pytest.mark.parametrize("form", [None, {"action": "break_off"}])
def test_it_hides_no_fault_of_ours(
    root: Client, faulty: None, caplog: pytest.LogCaptureFixture, form: dict[str, str] | None
) -> None:
    path = "/admin/gateway_app/apitoken/"
    if form is None:
        answer = root.get(path, {"q": ""})
    else:
        answer = root.post(path, {**form, "_selected_action": ApiToken.objects.get().pk})
    assert answer.status_code == 500
    [told] = [
        record for record in caplog.records if record.exc_info and record.levelname == "ERROR"
    ]
    assert "ValueError" in str(told.exc_info)
