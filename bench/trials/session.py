"""Stands where the emulation stands, in namespaces of its own.

It says a numbered line and the time again and again, and ends with a report that was made before. The file
`pace` says how many lines with how many other events each, and how long all of it takes; the run whose seed
is `LIVE_SEED` has a pace of its own, in `live_pace`. A stop is obeyed. The journal has a line for its start
and one for its end, so a verdict knows what happened.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from pathlib import Path
from typing import Any

LINES = 60
LIVE_SEED = 1_000_000
FILLER = {"type": "log", "level": "info", "text": "x" * 180}
"""A text about as large as a span."""
STATES = ("planning", "building", "loading", "running")
DIRECTORY = "LOOM_TRIAL_DIRECTORY"


def main(descriptor: int) -> None:
    directory = Path(os.environ[DIRECTORY])
    sock = socket.socket(fileno=descriptor)
    spec = json.loads(_line(sock))["spec"]
    note(directory, f"begun {spec['seed']}")
    for state in STATES:
        _send(sock, [{"type": "state", "state": state, "detail": ""}])
    pace = json.loads((directory / ("live_pace" if spec["seed"] == LIVE_SEED else "pace")).read_text())
    stopped = False
    for number in range(pace["lines"]):
        line = {"type": "log", "level": "info", "text": f"line {number}"}
        clock = {"type": "clock", "time_s": float(number), "wall_s": time.time()}
        _send(sock, [line, clock, *[FILLER] * pace["more"]])
        stopped = bool(select.select([sock], [], [], pace["run_s"] / pace["lines"])[0])
        if stopped:
            break
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    if stopped:
        sentence = "It was stopped by hand."
        report["outcome"] = {**report["outcome"], "kind": "cancelled", "sentence": sentence}
    note(directory, f"{'stopped' if stopped else 'finished'} {spec['seed']}")
    _send(sock, [{**report, "spec": spec, "type": "report"}])


def set_pace(directory: Path, name: str, run_s: float, lines: int = LINES, more: int = 0) -> None:
    """Set how fast an emulation goes, with `more` other events with each line."""
    (directory / name).write_text(json.dumps({"run_s": run_s, "lines": lines, "more": more}))


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
