"""Write docs/openapi.json: `.venv/bin/python -m scripts.openapi`. A test holds it to the code."""

import json
import os
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).resolve().parent.parent / "docs" / "openapi.json"


def written() -> str:
    """The document of this version as it stands in the file."""
    from gateway_app.api.routes import api

    schema: dict[str, Any] = api.get_openapi_schema()
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")
    import django

    django.setup()
    FILE.write_text(written(), encoding="utf-8")
