"""One run on a worker of this machine, and again with half a core: `python -m tests.support.throttled_run`.

`WHOLE HALF` are its arguments, the files that get the reports.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from emulator import emulate, expect_emulations
from emulator.session.fork_server import servers
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.strategies import registry as _strategies  # noqa: F401  (a report's plan has their layouts)
from tests.support.small_clusters import star

CGROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 10_000
REAL_TIME_US = 300_000
"""Of each second, for threads with real-time priority, which version 1 counts apart."""
GONE_S = 5.0
HALF = 0.5
PREFIX = "edgeloom-test-"


@contextlib.contextmanager
def share_of_a_core(share: float, servers: Sequence[int] = ()) -> Iterator[None]:
    """Inside, this process, the processes `servers` and those that they start have so much of one core, by a
    control group of version 2 or 1. Raises `OSError` where none can be made.
    """
    members = (os.getpid(), *servers)
    version_2 = (CGROUPS / "cgroup.controllers").exists()
    top = CGROUPS if version_2 else CGROUPS / "cpu"
    quota_us = int(share * PERIOD_US)
    limits = (
        {"cpu.max": f"{quota_us} {PERIOD_US}"}
        if version_2
        else {
            "cpu.cfs_period_us": PERIOD_US,
            "cpu.cfs_quota_us": quota_us,
            "cpu.rt_runtime_us": REAL_TIME_US,
        }
    )
    group = top / f"{PREFIX}{os.getpid()}"
    for left in top.glob(f"{PREFIX}*"):  # by killed processes; all groups together have so much real time
        if not Path("/proc", left.name.removeprefix(PREFIX)).exists():
            with contextlib.suppress(OSError):
                left.rmdir()
    group.mkdir()
    before = top / "cgroup.procs"
    try:
        for name, value in limits.items():
            with (group / name).open("r+") as file:
                file.write(str(value))
        for pid in members:
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for pid in members:
            before.write_text(str(pid))
        until_s = time.monotonic() + GONE_S
        while group.exists() and time.monotonic() < until_s:
            with contextlib.suppress(OSError):  # the kernel removes its last processes
                group.rmdir()
            time.sleep(0.01)


def spec() -> RunSpec:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    workload = Workload(prompt_tokens=16, new_tokens=4)
    return RunSpec.model_validate(
        {
            "cluster": star(2),
            "model": model,
            "weights": weights,
            "strategy": "voltage",
            "workload": workload,
            "dilation": 120.0,
        }
    )


def main(whole: str, half: str) -> None:
    """Both sessions are forked from one process: the second imports nothing with half a core."""
    expect_emulations()
    report = emulate(spec(), lambda events: None)
    Path(whole).write_text(report.model_dump_json())
    with share_of_a_core(HALF, servers()):
        report = emulate(spec(), lambda events: None)
    Path(half).write_text(report.model_dump_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
