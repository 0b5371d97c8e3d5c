"""Connects the rebaseline receiver; makes the default agent after migrations."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class GatewayAppConfig(AppConfig):
    name = "gateway_app"
    verbose_name = "Agents"

    def ready(self) -> None:
        from gateway_app import receivers

        receivers.connect()
        post_migrate.connect(_make_default_agent, sender=self)


def _make_default_agent(*, using: str, **_: object) -> None:
    from gateway_app.services.agents import ensure_default_agent

    ensure_default_agent()
