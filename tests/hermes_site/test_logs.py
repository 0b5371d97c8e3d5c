"""A line of the log says what happened and to what, and tells no secret."""

import logging
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.utils.module_loading import import_string

SESSION = UUID("01920000-0000-7000-8000-000000000000")


def line(name: str, message: str, *args: object, **facts: Any) -> str:
    """What the console shows of a record, by the settings."""
    record = logging.getLogger(name).makeRecord(
        name, logging.INFO, "file.py", 1, message, args, None, extra=facts
    )
    console = settings.LOGGING["handlers"]["console"]
    for filtering in console["filters"]:
        import_string(settings.LOGGING["filters"][filtering]["()"])().filter(record)
    made = dict(settings.LOGGING["formatters"][console["formatter"]])
    text: str = import_string(made.pop("()"))(made["format"], style=made["style"]).format(record)
    return text


def test_it_shows_the_facts_of_a_record() -> None:
    shown = line("gateway_app.turns.runner", "A run broke off", turn=7, session=SESSION)
    assert shown.endswith(f"INFO gateway_app.turns.runner A run broke off session={SESSION} turn=7")


def test_it_shows_nothing_beside_the_message_of_others() -> None:
    shown = line("django.request", "Not Found: %s", "/x", status_code=404, request="/login/s3cret/")
    assert shown.endswith("INFO django.request Not Found: /x")


def test_it_keeps_a_traceback_below_the_line() -> None:
    try:
        raise ValueError("no")
    except ValueError as exc:
        record = logging.LogRecord(
            "gateway_app", logging.ERROR, "f", 1, "Broke", None, (ValueError, exc, None)
        )
    record.turn = 7
    formatter = import_string("hermes_site.logs.LineFormatter")("{message}", style="{")
    assert formatter.format(record) == "Broke turn=7\nValueError: no"


@pytest.mark.parametrize("name", ["django.request", "gateway_app"])
def test_it_hides_the_secret_of_a_login_link(name: str) -> None:
    assert "s3cret" not in line(name, "Gone: %s", "/login/s3cret/")
