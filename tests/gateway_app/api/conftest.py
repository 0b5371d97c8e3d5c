"""A site to run requests against."""

from tests.gateway_app.serving.conftest import empty_site, migrated, site

__all__ = ["empty_site", "migrated", "site"]
