"""The factories make rows that both databases accept, read back as stored."""

import pytest

from sessions_app.models import BLOCK
from tests import factories

pytestmark = pytest.mark.django_db


def test_it_makes_every_row_without_an_argument():
    for name in vars(factories):
        made = getattr(factories, name)
        if name.endswith("Factory") and name != "DjangoModelFactory":
            assert made().pk is not None


def test_it_reads_back_what_the_triggers_wrote():
    session = factories.SessionFactory()
    first = factories.MessageFactory(session=session, text="one")
    second = factories.MessageFactory(session=session, text="two")
    assert (first.position, second.position) == (BLOCK + 1, 2 * BLOCK + 1)
    assert (first.revision, second.revision) == (1, 2)
    assert second.session.message_count == 2
    assert session.incarnation != 0


def test_it_grants_permissions_by_name():
    operator = factories.StaffFactory(permissions=["sessions_app.view_session"])
    assert operator.has_perm("sessions_app.view_session")
    assert not operator.has_perm("gateway_app.view_turn")


def test_it_gives_an_agent_its_first_version():
    agent = factories.AgentFactory(version__model="openai:special")
    assert [version.model for version in agent.versions.all()] == ["openai:special"]
