"""Times the start of a run until its devices are ready, and measures the memory of a device process."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from bench.emulation.clusters import star
from bench.tables.rows import Table
from emulator.host.leftovers import children
from emulator.session.client import emulate
from emulator.session.fork_server import servers
from engine.domain.events import Event, StateChanged
from engine.domain.spec import RunSpec
from engine.domain.units import human
from engine.domain.workload import Workload
from engine.models import catalogue

DEVICES = (2, 8, 16, 64)
MODEL = "demo-lm"
STRATEGY = "mcu"  # it has work for any number of devices


def measure_startup() -> Table:
    rows = []
    for count in DEVICES:
        seen_s, times, device_bytes = _start(count)
        total_s = seen_s["running"] - seen_s["asked"]
        session_s = total_s - times["building"] - times["devices_ready"] - times["calibrating"]
        ended_s = seen_s["gone"] - seen_s["report"]
        parts = (session_s, times["building"], times["calibrating"], times["devices_ready"], total_s, ended_s)
        rows.append((str(count), *(f"{seconds:.2f} s" for seconds in parts), human(device_bytes, "B")))
    title = (
        f"Star of N devices, {MODEL} by {STRATEGY}; network and torch come up together, then devices are "
        "forked and connected. Memory: a device's proportional share, mean."
    )
    columns = (
        "devices",
        "session, plan",
        "network, torch",
        "measuring links",
        "devices up",
        "all ready",
        "all gone",
        "memory of one",
    )
    return Table(title, columns, tuple(rows))


def _start(count: int) -> tuple[dict[str, float], dict[str, float], float]:
    """Start a run: the wall time of each state, the report's set-up times, and the bytes of a device process
    while it runs.
    """
    model, weights = catalogue.resolve(MODEL)
    spec = RunSpec(
        cluster=star(count, 2e9, 100e6),
        model=model,
        weights=weights,
        strategy=STRATEGY,
        workload=Workload(prompt_tokens=16, new_tokens=1),
        dilation=8.0,
    )
    while True:
        seen_s: dict[str, float] = {"asked": time.monotonic()}
        weighed: list[float] = []
        report = emulate(spec, partial(_note, seen_s, weighed))
        seen_s["gone"] = time.monotonic()
        if "queued" not in seen_s:  # this run had to wait for its turn, so its time does not count: repeat it
            times = {name: float(value) for name, value in report.timings.items()}
            return seen_s, times, weighed[0]


def _note(seen_s: dict[str, float], weighed: list[float], events: list[Event]) -> None:
    """Note when each state was first seen, and the memory of device processes once they run."""
    for event in events:
        name = event.state if isinstance(event, StateChanged) else event.type
        if name == "running" and name not in seen_s:
            seen_s[name] = time.monotonic()
            weighed.append(device_bytes())
        seen_s.setdefault(name, time.monotonic())


def device_bytes() -> float:
    """Mean proportional set size of the device processes: the server of sessions forked one that waits for
    the session's init, and that the devices (and shells, which hold namespaces up).
    """
    own = list(servers())
    title = _title(own[0])
    for _ in range(3):
        own = [child.pid for pid in own for child in children(pid) if _title(child.pid) == title]
    sizes = [size for pid in own if (size := _proportional_bytes(pid))]
    return sum(sizes) / max(1, len(sizes))


def _title(pid: int) -> bytes:
    """The command line of a process, b"" if it has ended: whoever is only forked keeps its parent's."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _proportional_bytes(pid: int) -> int:
    """The proportional set size of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
