"""One embedded model for all workers of a group."""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway_app.config import GatewayConfig
from gateway_app.local_model.child import LocalModelChild
from gateway_app.local_model.packages import LocalModelError
from gateway_app.providers.registry import LOCAL_MODEL, Providers


@contextmanager
def shared_local_model(config: GatewayConfig) -> Iterator[str | None]:
    """Where the model answers; None where it is somebody else's, or cannot run here.

    It is loaded at once if agents that name no model use it, else when it is first asked.
    """
    if config.local_url:
        yield None
        return
    default = Providers(config).site_default.partition(":")[0]
    child = LocalModelChild(when_asked=default != LOCAL_MODEL.partition(":")[0])
    try:
        url: str | None = child.start()
    except LocalModelError:
        url = None  # whoever asks for it is told what is missing
    try:
        yield url
    finally:
        child.close()
