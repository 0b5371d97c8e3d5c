"""The parts that every test shares: a real model server, a real gateway in this process."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Final

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.utils import translation
from hypothesis import HealthCheck, settings

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost, set_host
from gateway_app.serving.catalogues import compile_if_stale
from tests.factories import UserFactory
from tests.fake_model_server import FakeModelServer

# how fast a machine is decides no test
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

DATABASES: Final = {"db", "transactional_db", "database_url"}
"""Fixtures that bring a database of the kind that DATABASE_URL names."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that may use the database may use all its aliases: readers have one of their own.

    It is marked `database`, and so is one that starts servers on a database of the run's kind.
    """
    for item in items:
        marker = item.get_closest_marker("django_db")
        if marker is not None or DATABASES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("database")
        if marker is not None and "databases" not in marker.kwargs:
            everywhere = pytest.mark.django_db(**{**marker.kwargs, "databases": "__all__"})
            item.add_marker(everywhere, append=False)


@pytest.fixture(scope="session", autouse=True)
def translations() -> None:
    """The compiled translations are those of the source, as `make setup` would leave them."""
    compile_if_stale()


@pytest.fixture(autouse=True)
def language() -> Iterator[None]:
    """A page that was asked for in German leaves its thread to the next test in English."""
    yield
    translation.deactivate()


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    """The model: fake answers, real HTTP."""
    with FakeModelServer() as server:
        yield server


@pytest.fixture
def config(model: FakeModelServer) -> GatewayConfig:
    """The gateway's configuration in tests: the fake model, patience of tests."""
    return GatewayConfig(
        openai_base_url=model.url,
        openai_api_key="sk-test",
        default_model="openai:fake-1",
        max_retries=0,
        postgres_threads=4,  # the gateways of a test share one pool of connections
    )


@pytest_asyncio.fixture
async def gateway(config: GatewayConfig, transactional_db: None) -> AsyncIterator[GatewayHost]:
    """This process's gateway, started; everything it runs has ended after the test."""
    host = GatewayHost(replace(config))
    set_host(host)
    await host.start(checkpoint=False)
    try:
        yield host
    finally:
        await host.aclose()
        set_host(None)
        await sync_to_async(connections.close_all)()


@pytest_asyncio.fixture
async def other(gateway: GatewayHost) -> AsyncIterator[GatewayHost]:
    """Another process on the same database; here both share one pool of connections."""
    host = GatewayHost(replace(gateway.config, postgres_threads=2))
    await host.start(checkpoint=False)
    yield host
    await host.aclose()


@pytest.fixture
def owner(transactional_db: None) -> User:
    """The person whose conversation it is."""
    user: User = UserFactory(username="ann")
    return user


@pytest.fixture
def stranger(transactional_db: None) -> User:
    """Somebody else, without any permission."""
    user: User = UserFactory(username="bob")
    return user
