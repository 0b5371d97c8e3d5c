"""docs/openapi.json is the document of this code, and says no less than the answers do."""

from typing import Any

from gateway_app.api.routes import api
from scripts.openapi import FILE, written


def test_it_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), "python -m scripts.openapi"


def test_it_names_every_operation_once() -> None:
    ids = [one["operationId"] for one in operations()]
    assert len(ids) == len(set(ids)) >= 14
    assert all(one["description"] for one in operations())


def test_it_demands_a_credential_everywhere() -> None:
    assert all(one["security"] == [{"Authentication": []}] for one in operations())


def operations() -> list[dict[str, Any]]:
    return [
        operation
        for path in api.get_openapi_schema()["paths"].values()
        for operation in path.values()
    ]
