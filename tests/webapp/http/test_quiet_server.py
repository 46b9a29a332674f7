"""What the web server does while no request comes, or who asked does not wait for the answer."""

from __future__ import annotations

import asyncio
import logging

import pytest
import uvicorn
from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl

from webapp.http import server


def test_it_looks_once_a_second_whether_to_stop_and_writes_the_date_anew_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dates, waits = [], []

    async def wait(seconds: float) -> None:
        dates.append(web.server_state.default_headers[0])
        waits.append(seconds)
        web.should_exit = len(waits) == 3

    monkeypatch.setattr(asyncio, "sleep", wait)
    monkeypatch.setattr("uvicorn.server.formatdate", lambda at, usegmt: f"look {len(dates)}")
    web = uvicorn.Server(uvicorn.Config(app="nothing", log_config=None))
    web.config.encoded_headers = []
    asyncio.run(server.main_loop(web))
    assert waits == [1.0, 1.0, 1.0]
    assert dates == [(b"date", f"look {number}".encode()) for number in range(3)]


class Gone:
    """The transport of a connection that is lost, of which uvicorn has not told this request yet."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: bytes) -> None:
        raise RuntimeError("the handler is closed")


def test_an_answer_to_who_has_gone_is_dropped_without_a_stack_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn tells only the newest of the requests on a connection that it is lost."""
    monkeypatch.setattr(uvicorn, "main", lambda: None)
    monkeypatch.setattr(uvicorn.Server, "main_loop", uvicorn.Server.main_loop)
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", HTTP_PROTOCOLS["auto"])
    monkeypatch.setattr(httptools_impl, "RequestResponseCycle", httptools_impl.RequestResponseCycle)
    server.main()
    log = logging.getLogger("uvicorn.error")
    answer = httptools_impl.RequestResponseCycle(
        scope={"method": "GET", "http_version": "1.1"},  # type: ignore[typeddict-item]
        transport=Gone(),  # type: ignore[arg-type]
        flow=FlowControl(Gone()),  # type: ignore[arg-type]
        logger=log,
        access_logger=log,
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=True,
        on_response=lambda: None,
    )
    asyncio.run(answer.send({"type": "http.response.start", "status": 200, "headers": []}))
    asyncio.run(answer.send({"type": "http.response.body", "body": b"{}"}))
