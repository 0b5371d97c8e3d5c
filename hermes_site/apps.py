"""Registers the checks of the whole configuration; names the admin's site."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.core import checks


class HermesAdminConfig(AdminConfig):
    default_site = "gateway_app.admin_site.HermesAdminSite"


class SiteConfig(AppConfig):
    name = "hermes_site"
    verbose_name = "Hermes"

    def ready(self) -> None:
        from hermes_site.checks import check_data_dir, check_environment

        checks.register(check_environment)
        checks.register(check_data_dir)
