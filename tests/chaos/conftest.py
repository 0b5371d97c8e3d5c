"""The sites of the serving tests."""

from tests.gateway_app.serving.conftest import empty_site, migrated, site

__all__ = ["empty_site", "migrated", "site"]
