"""llama.cpp with the model in it: a thin client of the HTTP server that it runs by itself."""

import os
import secrets
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp
import msgspec

from gateway_app.local_model.answers import Token
from gateway_app.local_model.chatml import SPECIALS
from gateway_app.local_model.packages import model_file

SLOTS: Final = 4
WINDOW_TOKENS: Final = 4096
"""Of each slot; the model was trained up to 8192. 23 KB a token, taken at start."""
THREADS: Final = 2
BATCH_TOKENS: Final = 64
"""Prompt tokens read at a time: a cancelled request ends after at most one batch (0.3 s)."""
PARKED_MIB: Final = 256
"""Memory for conversations that lost their slot; they come back without being read anew."""


class EngineError(Exception):
    """llama.cpp refused a request or broke off."""


class _Timings(msgspec.Struct):
    cache_n: int = 0


class Step(msgspec.Struct):
    """One event of an answer: some of the prompt was read (nothing in it), some text was written,
    or it is the end: the reason and the counts."""

    content: str = ""
    tokens: list[int] = []
    tokens_predicted: int = 0
    stop: bool = False
    stop_type: str = "none"
    timings: _Timings | None = None


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Slot(msgspec.Struct):
    is_processing: bool = False


@dataclass(frozen=True, slots=True)
class RunningEngine:
    """A llama.cpp that serves HTTP on `url` to whoever knows `key`, until the process ends."""

    url: str
    key: str
    server: object
    """Keeps it alive. It cannot be ended in good order while it generates: the process exits."""


def start_engine() -> RunningEngine:
    """Loads the model (about a second). Raises LocalModelError if its packages are missing."""
    path = model_file()
    # read by OpenMP as it is loaded: threads that wait for each other must not spin, or the model
    # nearly stands still (80 -> 2 tokens a second seen) whenever something else needs a core
    os.putenv("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    key = secrets.token_hex(16)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * WINDOW_TOKENS
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = min(
        THREADS, os.cpu_count() or 1
    )
    params.n_gpu_layers = 0
    params.verbosity = -1
    params.cache_ram_mib = PARKED_MIB
    params.cache_idle_slots = False
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [key]
    params.ui = False
    params.cors_origins = "http://127.0.0.1"
    params.sse_ping_interval = -1
    server = xllamacpp.Server(params)
    return RunningEngine(url=server.listening_address, key=key, server=server)


class EngineClient:
    """Speaks to one engine. Must be closed."""

    def __init__(self, engine: RunningEngine) -> None:
        self._http = aiohttp.ClientSession(
            engine.url,
            headers={"Authorization": f"Bearer {engine.key}"},
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=2**20,
        )

    async def tokenize(self, pieces: Sequence[Token]) -> list[int]:
        """The pieces as tokens. A text among them never becomes a control token."""
        return await self._tokenize(pieces, specials=False)

    async def specials(self) -> tuple[int, int]:
        """The tokens of SPECIALS."""
        start, end = await self._tokenize(SPECIALS, specials=True)
        return start, end

    async def generating(self) -> int:
        """How many slots are at work this moment."""
        async with self._http.get("/slots") as response:
            slots = msgspec.json.decode(await response.read(), type=list[_Slot])
        return sum(slot.is_processing for slot in slots)

    async def complete(self, body: dict[str, object]) -> AsyncGenerator[Step]:
        """The answer's events, the last one with `stop`. Raises EngineError.

        Closing the iterator cuts the connection, at which llama.cpp stops.
        """
        async with self._http.post("/completion", data=msgspec.json.encode(body)) as response:
            if response.status != 200:
                raise EngineError(f"llama.cpp answered {response.status}")
            async for line in response.content:
                if line.startswith((b"error:", b'data: {"error"')):
                    raise EngineError("llama.cpp broke off its answer")
                if not line.startswith(b"data: {"):
                    continue
                step = msgspec.json.decode(line[6:], type=Step)
                yield step
                if step.stop:
                    return
        raise EngineError("llama.cpp ended its answer early")

    async def aclose(self) -> None:
        await self._http.close()

    async def _tokenize(self, content: str | Sequence[Token], *, specials: bool) -> list[int]:
        body = {"content": content, "add_special": False, "parse_special": specials}
        async with self._http.post("/tokenize", data=msgspec.json.encode(body)) as response:
            if response.status != 200:
                raise EngineError(f"llama.cpp answered {response.status}")
            return msgspec.json.decode(await response.read(), type=_Tokens).tokens
