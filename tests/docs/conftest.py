"""The documents as they are, and a site to try them on."""

from tests.gateway_app.serving.conftest import empty_site, migrated, site

__all__ = ["empty_site", "migrated", "site"]
