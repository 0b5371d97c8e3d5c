"""Static files of which one must have changed: together they have another hash."""

from typing import Any

from hermes_site.storage import HashedStaticFiles


class Another(HashedStaticFiles):
    def load_manifest(self) -> tuple[Any, str]:
        paths, _ = super().load_manifest()
        return paths, "another"
