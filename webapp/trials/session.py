"""Stands where the emulation stands, in namespaces of its own: `python -m webapp.trials.session FD`.

It takes `run_s` seconds, says a numbered line again and again, and ends with a report that was made before.
It obeys a stop. The journal has a line for its start and one for its end, so a verdict knows what happened.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from pathlib import Path
from typing import Any

LINES = 60
STATES = ("planning", "building", "loading", "running")
DIRECTORY = "LOOM_TRIAL_DIRECTORY"


def main(descriptor: int) -> None:
    directory = Path(os.environ[DIRECTORY])
    sock = socket.socket(fileno=descriptor)
    spec = json.loads(_line(sock))["spec"]
    note(directory, f"begun {spec['seed']}")
    for state in STATES:
        _send(sock, [{"type": "state", "state": state, "detail": ""}])
    run_s = float((directory / "run_s").read_text())
    stopped = False
    for number in range(LINES):
        _send(sock, [{"type": "log", "level": "info", "text": f"line {number}"}])
        stopped = bool(select.select([sock], [], [], run_s / LINES)[0])
        if stopped:
            break
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    if stopped:
        sentence = "It was stopped by hand."
        report["outcome"] = {**report["outcome"], "kind": "cancelled", "sentence": sentence}
    note(directory, f"{'stopped' if stopped else 'finished'} {spec['seed']}")
    _send(sock, [{**report, "spec": spec, "type": "report"}])


def note(directory: Path, line: str) -> None:
    """One write, so that lines of several sessions do not mix."""
    with (directory / "journal").open("a") as journal:
        journal.write(f"{line}\n")


def _line(sock: socket.socket) -> bytes:
    text = b""
    while not text.endswith(b"\n"):
        piece = sock.recv(1 << 20)
        if not piece:
            os._exit(1)
        text += piece
    return text


def _send(sock: socket.socket, events: list[dict[str, Any]]) -> None:
    sock.sendall((json.dumps({"events": events}) + "\n").encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
