"""What the database knows of a session's log: prints [[seq, time of its insert], ...] as JSON."""

import json
import sys

import django

django.setup()

from gateway_app.models import DEFAULT_PROMPT, Event  # noqa: E402


def main() -> None:
    if sys.argv[1] == "prompt":
        sys.stdout.write(json.dumps(len(DEFAULT_PROMPT)))
        return
    rows = Event.objects.filter(session_id=sys.argv[1]).order_by("seq")
    found = [(seq, at.isoformat()) for seq, at in rows.values_list("seq", "created_at")]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
