"""A process's heart, beating when a test says so; and the turns that the process counted."""

from gateway_app.host import GatewayHost
from gateway_app.metrics import REGISTRY
from gateway_app.turns.heartbeat import Heartbeat


async def beat(host: GatewayHost) -> None:
    """The process obeys, renews and takes up what it should, as it does each second."""
    await Heartbeat(host.runner, host.lanes, host.hub, host.config).beat()


def counted(state: str, code: str = "") -> float:
    """How many turns that ended so the process counted so far."""
    labels = {"state": state, "code": code}
    return REGISTRY.get_sample_value("hermes_turns_total", labels) or 0
