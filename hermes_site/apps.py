"""Registers the checks of the whole configuration."""

from django.apps import AppConfig
from django.core import checks


class SiteConfig(AppConfig):
    name = "hermes_site"
    verbose_name = "Hermes"

    def ready(self) -> None:
        from hermes_site.checks import check_data_dir, check_environment

        checks.register(check_environment)
        checks.register(check_data_dir)
