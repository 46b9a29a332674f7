"""What the web server does while no request comes."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn

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
