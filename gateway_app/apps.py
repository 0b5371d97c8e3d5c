"""Connects receivers and finds tools; after migrations makes the first agent and the groups."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy


class GatewayAppConfig(AppConfig):
    name = "gateway_app"
    verbose_name = gettext_lazy("Agents")

    def ready(self) -> None:
        from gateway_app import receivers, revocation
        from gateway_app.tools import registry

        receivers.connect()
        revocation.connect()
        registry.discover()
        post_migrate.connect(_make_first_rows, sender=self)


def _make_first_rows(*, using: str, **_: object) -> None:
    from gateway_app.services.agents import ensure_default_agent
    from gateway_app.services.roles import ensure_roles

    ensure_default_agent()
    ensure_roles()
