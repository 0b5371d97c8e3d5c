"""A network between a client and a server that can be cut, and held up."""

import asyncio
from typing import Self


class CuttingProxy:
    """`async with CuttingProxy(port) as proxy:` passes bytes on, until it is told otherwise."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Condition()
        self.open = asyncio.Event()
        """While it is not set, new connections are taken but nothing is passed on."""
        self.open.set()
        self.taken = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.open.set()
        self.cut()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    def cut(self) -> None:
        """Every connection that is open breaks off."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def connections(self, count: int) -> None:
        """Waits until so many connections have been taken."""
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: self.taken >= count)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._changed:
            self.taken += 1
            self._changed.notify_all()
        await self.open.wait()
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, there_writer}
        for source, target in ((reader, there_writer), (there_reader, writer)):
            pipe = asyncio.create_task(self._pass_on(source, target))
            self._pipes.add(pipe)
            pipe.add_done_callback(self._pipes.discard)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(65536):
                target.write(piece)
                await target.drain()
        except ConnectionError:
            pass
        finally:
            target.close()
