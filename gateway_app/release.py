"""Which release this process is: a page of one does not belong to a server of another."""

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage, staticfiles_storage

from gateway_app import __version__


def release() -> str:
    """The version, and behind a plus what stands for all collected static files together."""
    if not isinstance(staticfiles_storage, ManifestStaticFilesStorage):
        return __version__
    return f"{__version__}+{staticfiles_storage.manifest_hash}"
