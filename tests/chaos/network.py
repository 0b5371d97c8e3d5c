"""A TCP proxy that is slow when told to, and may cut every connection."""

import asyncio
from typing import Self


class BadNetwork:
    """Passes bytes on to the database; `delay_s` holds each piece back."""

    def __init__(self, host: str, port: int) -> None:
        self._there = (host, port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._pipes: set[asyncio.Task[None]] = set()
        self.delay_s = 0.0

    async def start(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def aclose(self) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    def cut(self) -> None:
        """Every connection that is open breaks off."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def heal(self) -> None:
        self.delay_s = 0.0

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._there)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        for source, target in ((reader, there_writer), (there_reader, writer)):
            pipe = asyncio.create_task(self._pass_on(source, target))
            self._pipes.add(pipe)
            pipe.add_done_callback(self._pipes.discard)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                target.write(piece)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()
            self._writers.discard(target)
