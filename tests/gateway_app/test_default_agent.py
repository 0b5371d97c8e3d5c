"""One agent is the default, also while two people switch it at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from gateway_app.models import Agent
from gateway_app.services.agents import make_default_agent
from tests.factories import AgentFactory

ROUNDS = 10


@pytest.mark.django_db(transaction=True)
def test_it_keeps_one_default_while_two_switch_it_at_once():
    agents = [AgentFactory(), AgentFactory()]
    barrier = Barrier(len(agents))

    def switch(agent: Agent) -> None:
        try:
            for _ in range(ROUNDS):
                barrier.wait(timeout=30)
                make_default_agent(agent=agent)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(agents)) as pool:
        list(pool.map(switch, agents))
    assert Agent.objects.get(is_default=True) in agents
