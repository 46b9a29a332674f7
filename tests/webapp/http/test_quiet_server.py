"""What the web server does while no request comes, or who asked does not wait for the answer."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvicorn

from webapp.http import server

ROOT = Path(__file__).resolve().parents[3]


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


GONE = """
async def application(scope, receive, send):
    send.__self__.transport.abort()  # whoever asked goes: its protocol is told in the next turn
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
"""


def test_who_goes_before_the_answer_leaves_no_stack_trace_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text(GONE, encoding="utf-8")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        number = listener.fileno()
        command = [sys.executable, "-m", server.__name__, "gone:application", "--lifespan", "off"]
        with subprocess.Popen(
            [*command, "--app-dir", str(tmp_path), "--fd", str(number)],
            cwd=ROOT,
            pass_fds=[number],
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            with socket.create_connection(listener.getsockname()) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert client.recv(1) == b""
            program.terminate()
            said = program.communicate()[1]
    assert "Started server process" in said and "Traceback" not in said and "ERROR" not in said, said
