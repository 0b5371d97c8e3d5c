"""The content security policies of our pages. Every script, style and font is our own file."""

from typing import Final

from django.http import HttpRequest

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

TRUSTED_TYPES_POLICY: Final = (
    f"{PAGE_POLICY}; require-trusted-types-for 'script'; trusted-types dompurify"
)
"""For pages that show model text: markup becomes nodes only by way of the sanitiser."""


def diagram_frame_policy(request: HttpRequest) -> str:
    """For the frame that draws diagrams: an origin of its own, no network, and styles in markup.

    It names the site: to WebKit, `'self'` is the frame's own origin, which holds no script. An
    IPv6 address cannot be named.
    """
    host = request.get_host()
    scripts = "'self'" if host.startswith("[") else f"'self' {request.scheme}://{host}"
    return (
        f"sandbox allow-scripts; default-src 'none'; script-src {scripts}; "
        "style-src 'unsafe-inline'; frame-ancestors 'self'"
    )
