"""One run on a worker of this machine with a share of one core: `python -m tests.support.throttled_run`.

`SHARE OUT` are its arguments: 0.5 is half a core, 0 no limit; the file OUT gets the report.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from emulator import emulate
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


@contextlib.contextmanager
def share_of_a_core(share: float) -> Iterator[None]:
    """Inside, this process and those that it starts have so much of one core, by a control group of version 2
    or 1. Raises `OSError` where none can be made.
    """
    if not share:
        yield
        return
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
    group = top / f"edgeloom-test-{os.getpid()}"
    group.mkdir()
    before = top / "cgroup.procs"
    try:
        for name, value in limits.items():
            with (group / name).open("r+") as file:
                file.write(str(value))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        before.write_text(str(os.getpid()))
        until_s = time.monotonic() + GONE_S
        while group.exists() and time.monotonic() < until_s:
            with contextlib.suppress(OSError):  # the kernel removes its last processes
                group.rmdir()
            time.sleep(0.01)


def spec(dilation: float | str = 120.0) -> RunSpec:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    workload = Workload(prompt_tokens=16, new_tokens=4)
    return RunSpec.model_validate(
        {
            "cluster": star(2),
            "model": model,
            "weights": weights,
            "strategy": "voltage",
            "workload": workload,
            "dilation": dilation,
        }
    )


def main(share: str, out: str) -> None:
    with share_of_a_core(float(share)):
        report = emulate(spec(), lambda events: None)
    Path(out).write_text(report.model_dump_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
