"""The content security policies of our pages. Every script, style and font is our own file."""

from typing import Final

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

TRUSTED_TYPES_POLICY: Final = (
    f"{PAGE_POLICY}; require-trusted-types-for 'script'; trusted-types dompurify"
)
"""For pages that show model text: markup becomes nodes only by way of the sanitiser."""

DIAGRAM_FRAME_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; "
    "frame-ancestors 'self'"
)
"""For the frame that draws diagrams: an origin of its own, no network, and styles in markup."""
