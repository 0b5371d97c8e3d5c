"""Static files under names that hold their content's hash, also inside JavaScript imports."""

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage


class HashedStaticFiles(ManifestStaticFilesStorage):
    """Every collected file has an immutable name; a page of one version never meets another's."""

    support_js_module_import_aggregation = True
