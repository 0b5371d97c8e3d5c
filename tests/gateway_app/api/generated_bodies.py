"""How generated bodies are sent that are no JSON. Schemathesis loads this."""

from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: Any, value: Any) -> bytes:
    """Text as it is; anything else as its words."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
