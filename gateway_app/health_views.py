"""What a supervisor asks: is the process alive, and may it get traffic?"""

from asgiref.sync import sync_to_async
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from gateway_app import readiness, storage
from gateway_app.host import host


@require_safe
async def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the event loop answers; asks nothing else."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
async def readyz(request: HttpRequest) -> JsonResponse:
    """200 if every part is in order and the process does not drain, else 503; says which."""
    parts = await sync_to_async(readiness.database_parts)()
    parts["channelLayer"] = await readiness.channel_layer_part()
    stuck = host().lanes.write_waits_s() > storage.LONG_S
    parts["storage"] = storage.WAITS if stuck or not host().storage.storing else readiness.OK
    draining = host().draining
    ready = not draining and all(state == readiness.OK for state in parts.values())
    answer = {"ready": ready, "draining": draining, **parts}
    return JsonResponse(answer, status=200 if ready else 503)
