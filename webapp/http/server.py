"""Runs uvicorn so that it waits for a request only so long, and costs next to nothing while none comes.

`python -m webapp.http.server webapp.asgi:application …`: its options are uvicorn's. A connection
that sends half a request and then nothing would stay open for ever. `webapp/http/body_limit.py` waits for
bodies.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_S = 20.0
"""Seconds from the connection, or the first byte of a later request, to the end of its headers."""


class ImpatientHttp(HttpToolsProtocol):
    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.deadline = self.loop.call_later(HEAD_S, transport.abort)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.deadline is None:
            self.deadline = self.loop.call_later(HEAD_S, self.transport.abort)

    def on_headers_complete(self) -> None:
        self._in_time()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


class Answer(RequestResponseCycle):
    async def send(self, message: Any) -> None:
        """Send nothing to who has gone: uvicorn learns a moment later that its connection is closed, and a
        write until then would raise what looks like a defect of the application.
        """
        self.disconnected = self.disconnected or self.transport.is_closing()
        await super().send(message)


async def main_loop(server: uvicorn.Server) -> None:
    """Write the header with the date anew, and see whether to stop, once a second: uvicorn's own does it ten
    times.
    """
    while not await server.on_tick(0):
        await asyncio.sleep(1.0)


def main() -> Any:
    uvicorn.Server.main_loop = main_loop  # type: ignore[assignment, method-assign]
    httptools_impl.RequestResponseCycle = Answer  # type: ignore[misc]
    HTTP_PROTOCOLS["auto"] = "webapp.http.server:ImpatientHttp"
    return uvicorn.main()


if __name__ == "__main__":
    main()
