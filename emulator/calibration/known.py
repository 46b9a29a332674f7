"""Keeps this host's calibration in the cache, and runs the process that measures it when somebody asks.

`known_calibration` is the only way to this host's calibration: `predict`, `run`, the benchmarks and the web
server all find it here. None of them measures it by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from emulator.calibration.shapes import Extent
from engine.domain.cache_directory import cache_directory
from engine.domain.calibration import Calibration, read_calibration
from engine.domain.errors import HostError, SpecError
from engine.domain.spec import RunSpec

ROOT = Path(__file__).resolve().parents[2]
PROGRESS = "calibrating: "
"""What a child's line about its progress begins with."""

PAUSED = "a round of calibrating is over"
"""A child's line that says that it waits for a line of its parent."""

CHECK_S = 0.2
"""Seconds between two calls of `check`."""

GRACE_S = 5.0
"""How long the child may take to end after Ctrl-C."""

PROCESSOR = Path("/proc/cpuinfo")
BOARD = Path("/proc/device-tree/model")
"""The board's name where firmware describes the hardware to Linux, with a zero byte at its end."""


def calibration_file() -> Path:
    return cache_directory() / "calibration.json"


def known_calibration() -> Calibration | None:
    """The calibration in the cache if it is of this processor, or None."""
    try:
        known = read_calibration(calibration_file())
    except SpecError:  # absent, or written by another version
        return None
    return known if known.profile.host == host_name() else None


def time_needed_s(extent: Extent) -> float:
    """Seconds that a calibration takes, about, on this machine now: longer where other processes use the
    cores.

    It has one process at a time for most of its time, and never more than half of its own cores' worth.
    """
    cores = len(os.sched_getaffinity(0))
    return extent.quiet_s * max(1.0, (os.getloadavg()[0] + 1) / cores)


def with_profile(spec: RunSpec) -> RunSpec:
    """The run with the times of this host, where it depends on them or is compared with them, if they are
    known.
    """
    if not needs_profile(spec):
        return spec
    known = known_calibration()
    return spec.model_copy(update={"profile": known.profile}) if known else spec


def measured(
    extent: Extent,
    models: Sequence[str] = (),
    rows: Sequence[int] = (),
    progress: Callable[[str], None] = lambda what: None,
    between: Callable[[], None] | None = None,
    check: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Measure now in a child process, and time operations of `models` on `rows` rows in turn.

    `progress` gets what is being measured; `check` is called several times a second. After each round the
    child waits while `between` runs. Returns the fields of a `Measured` (`calibrate.py`) as plain data.
    Raises `HostError` if that fails. Ctrl-C, or what one of the three functions raises, ends the child.
    """
    arguments = [extent.name, ",".join(models), ",".join(map(str, rows)), "yes" if between else "no"]
    with tempfile.TemporaryFile("w+") as answer:
        child = subprocess.Popen(
            [sys.executable, "-m", "emulator.calibration.calibrate", *arguments],
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=answer,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C reaches this process alone, which then ends all of the child's
        )
        said = _said(child, progress, between or (lambda: None), check)
        if child.returncode:
            reason = (said or ["no reason given"])[-1]
            raise HostError(f"Calibrating this machine failed: {reason}.")
        answer.seek(0)
        result: dict[str, Any] = json.loads(answer.read().splitlines()[-1])
    return result


def _said(
    child: subprocess.Popen[str],
    progress: Callable[[str], None],
    between: Callable[[], None],
    check: Callable[[], None],
) -> list[str]:
    """What `child` said on stderr until its end, without its progress. Ctrl-C here ends it, too."""
    said = []
    assert child.stdin is not None and child.stderr is not None, "it was started with pipes"
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_pass_on, args=(child.stderr, lines), daemon=True)
    reader.start()
    try:
        while (line := _next_line(lines, check)) is not None:
            if line.startswith(PROGRESS):
                progress(line.removeprefix(PROGRESS).strip())
            elif line.strip() == PAUSED:
                between()
                with contextlib.suppress(BrokenPipeError):  # it has ended: its last words follow
                    child.stdin.write("\n")
                    child.stdin.flush()
            elif line.strip():
                said.append(line.strip())
        child.wait()
    except BaseException:
        os.killpg(child.pid, signal.SIGINT)  # it removes its files
        try:
            child.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:  # a process that was started in the background ignores Ctrl-C
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        raise
    finally:
        reader.join(GRACE_S)
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
    return said


def _pass_on(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Pass on the lines of `stream`, then None."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _next_line(lines: queue.SimpleQueue[str | None], check: Callable[[], None]) -> str | None:
    while True:
        check()
        with contextlib.suppress(queue.Empty):
            return lines.get(timeout=CHECK_S)


def keep(calibration: Calibration, raw: object) -> None:
    """Write the calibration to the cache and, beside it, the measurements that it was made from."""
    path = calibration_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {"host": calibration.profile.host, "source": calibration.device.source, "measured": raw}
    for target, text in (
        (path.with_name("calibration-raw.json"), json.dumps(made)),
        (path, calibration.to_json()),
    ):
        draft = target.with_suffix(f".{uuid.uuid4().hex}")
        draft.write_text(text)
        draft.replace(target)


def host_name() -> str:
    """The processor's model name, for which a profile holds; where it has none, as on ARM, the board's."""
    for line in PROCESSOR.read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return BOARD.read_text().strip("\0\n ") if BOARD.exists() else platform.machine()


def needs_profile(spec: RunSpec) -> bool:
    """Whether the run depends on this host's speed, or is compared with it, and has no profile yet."""
    if spec.profile is not None:
        return False
    models = {spec.compute_model or device.compute_model for device in spec.cluster.devices}
    return spec.dilation in ("auto", "native") or "measured" in models
