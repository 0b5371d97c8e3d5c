"""API tokens: made and revoked here; a token's text is shown once, in the answer that made it."""

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Field, QuerySet
from django.forms import Field as FormField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from gateway_app import credentials
from gateway_app.admin import cells, words
from gateway_app.admin.history import note_change
from gateway_app.content_policy import TRUSTED_TYPES_POLICY
from gateway_app.models import ApiToken
from sessions_app.sentences import say


class TokenStateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "is"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [(value, word.text) for value, word in words.TOKEN_STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
        expired = {"revoked_at": None, "expires_at__lte": timezone.now()}
        match self.value():
            case "revoked":
                return queryset.exclude(revoked_at=None)
            case "expired":
                return queryset.filter(**expired)
            case "live":
                return queryset.filter(revoked_at=None).exclude(**expired)
        return queryset


def state_of(token: ApiToken) -> str:
    if token.revoked_at:
        return "revoked"
    return "expired" if token.expires_at and token.expires_at <= timezone.now() else "live"


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin[ApiToken]):
    """A token acts as its owner: staff make their own, superusers anybody's."""

    list_display = (
        "shown_prefix", "name", "user", "state_cell", "created", "used", "expires", "revoked",
    )  # fmt: skip
    list_filter = (TokenStateFilter,)
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__username")
    autocomplete_fields = ("user",)
    ordering = ("-created_at", "-pk")
    show_full_result_count = False
    empty_value_display = cells.NOTHING
    actions = ("revoke",)

    def get_fieldsets(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        if obj is not None:
            return [(None, {"fields": ["shown_prefix", *self.list_display[1:]]})]
        owned = ["user"] if _is_superuser(request) else []
        return [(None, {"fields": [*owned, "name", "expires_at"]})]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Most tokens are made for oneself. The address fills in nothing: nobody checks it."""
        return {"user": request.user.pk}

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> FormField | None:
        found = super().formfield_for_dbfield(db_field, request, **kwargs)
        if found and db_field.name == "expires_at":
            found.help_text = gettext("Empty: it never expires.")
        return found

    def get_urls(self) -> list[URLPattern]:
        revoke = path(
            "<int:token_id>/revoke/",
            self.admin_site.admin_view(require_POST(self.revoke_view)),
            name="gateway_app_apitoken_revoke",
        )
        return [revoke, *super().get_urls()]

    def revoke_view(self, request: HttpRequest, token_id: int) -> HttpResponse:
        """The button on a token's page."""
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        token = get_object_or_404(ApiToken, pk=token_id)
        self.revoke(request, ApiToken.objects.filter(pk=token.pk))
        return HttpResponseRedirect(reverse("admin:gateway_app_apitoken_change", args=[token.pk]))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        may_revoke = {"may_revoke": self.has_revoke_permission(request)}
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), **may_revoke}
        )

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """A revoked token stays listed: it is the record of who could enter."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("gateway_app.change_apitoken")

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """The token exists; its text goes to `response_add` with the object, and nowhere else."""
        user = obj.user if _is_superuser(request) else cast(User, request.user)
        text = credentials.create_token(user=user, name=obj.name, expires_at=obj.expires_at)
        stored = ApiToken.objects.filter(user=user, prefix=text[: credentials.SHOWN_CHARACTERS])
        made = stored.latest("pk")
        obj.pk, obj.user, obj.prefix = made.pk, user, made.prefix
        obj.__dict__["made_text"] = text

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One way to save: every one leads to the page that shows the text."""
        only_save = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, {**(extra_context or {}), **only_save})

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Shows the text in this one answer; it passes no message store, cookie or cache."""
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("API token made"),
            "opts": self.opts,
            "token": obj,
            "text": obj.__dict__.pop("made_text"),
        }
        return TemplateResponse(
            request,
            "admin/gateway_app/apitoken/made.html",
            context,
            headers={"Content-Security-Policy": TRUSTED_TYPES_POLICY},
        )

    @admin.action(description=_("Revoke the selected API tokens"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        live = list(queryset.filter(revoked_at=None))
        for token in live:
            credentials.revoke_token(token)
            note_change(request, token, say("Revoked."))
        count = len(live)
        self.message_user(
            request,
            ngettext(
                "%(count)d API token revoked. Nobody enters with it any more.",
                "%(count)d API tokens revoked. Nobody enters with them any more.",
                count,
            )
            % {"count": count},
            messages.SUCCESS,
        )

    @admin.display(description=_("prefix"), ordering="prefix")
    def shown_prefix(self, token: ApiToken) -> SafeString:
        return cells.code(f"{token.prefix}…")

    @admin.display(description=_("state"))
    def state_cell(self, token: ApiToken) -> SafeString:
        return cells.mark(words.word_of(words.TOKEN_STATES, state_of(token)))

    @admin.display(description=_("created"), ordering="created_at")
    def created(self, token: ApiToken) -> SafeString | str:
        return cells.moment(token.created_at)

    @admin.display(description=_("last used"), ordering="last_used_at")
    def used(self, token: ApiToken) -> SafeString | str:
        return cells.moment(token.last_used_at)

    @admin.display(description=_("expires"), ordering="expires_at")
    def expires(self, token: ApiToken) -> SafeString | str:
        return cells.moment(token.expires_at)

    @admin.display(description=_("revoked"), ordering="revoked_at")
    def revoked(self, token: ApiToken) -> SafeString | str:
        return cells.moment(token.revoked_at)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)
