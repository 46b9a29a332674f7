"""`python -m webapp.trials.campaign`, which `./loom chaos --world service` runs in namespaces of its own.

Inside, this process is the first one, sees only its own processes, and has its own loopback and mounts. So it
sees what a trial leaves behind, and the kernel removes what the campaign leaves behind.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from webapp.trials import servers
from webapp.trials.schedule import Schedule, schedule

SETTLED_WITHIN_S = 60.0
TICK_S = 0.05


class Judged(NamedTuple):
    """How one trial ended: the states of its runs, what is wrong, and which of its phases took how long."""

    schedule: Schedule
    states: tuple[str, ...]
    problems: tuple[str, ...]
    wall_s: float
    phases: str


def open_databases(kind: str, directory: Path, disk: servers.Disk) -> servers.Database:
    if kind == "postgresql":
        place = directory / "postgresql"
        place.mkdir()
        return servers.Postgresql(place, disk.directory)
    return servers.Sqlite(disk.directory)


def environment(directory: Path, redis_url: str, database_url: str) -> dict[str, str]:
    """What this process, the fork server and all workers and sessions read."""
    return {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "REDIS_URL": redis_url,
        "DATABASE_URL": database_url,
        "LOOM_STATE_DIR": str(directory / "state"),
        "LOOM_TRIAL_DIRECTORY": str(directory),
        "LOOM_TRIAL_CLOCK": str(directory / "clock"),
        "LOOM_RUNS_WAITING": "100000",
        "OMP_NUM_THREADS": "1",
    }


def campaign(kind: str, seed: int, first: int, trials: int, directory: Path) -> list[Judged]:
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    directory.chmod(0o755)
    disk = servers.Disk(directory / "disk", servers.DISK_BYTES[kind])
    redis, database = servers.Redis(directory), open_databases(kind, directory, disk)
    (directory / "clock").write_text("0.0")
    os.environ.update(environment(directory, redis.server.url, database.url))
    redis.start()
    database.start()
    importlib.import_module("webapp.trials.django_ready")  # settings are read now
    from webapp.trials.trial import Trials

    runner = Trials(redis, database, disk, directory)
    judged = []
    try:
        for number in range(first, first + trials):
            judged.append(runner.play(schedule(seed, number)))
            sys.stdout.write(line_of(judged[-1]))
            sys.stdout.flush()
    finally:
        runner.stop()
        redis.kill()
        database.stop()
    return judged


def line_of(one: Judged) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(one.states).items()))
    faults = ", ".join(f"{step.fault} at {step.at_s:g} for {step.lasts_s:g} s" for step in one.schedule.steps)
    wrong = "".join(f"  {problem}\n" for problem in one.problems)
    return f"{one.schedule.title}: {counts}; {one.wall_s:.1f} s ({one.phases}); {faults}\n{wrong}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--result", type=Path, help="write counts as JSON to this file")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="edgeloom-trials-"))
    began_s = time.monotonic()
    judged: list[Judged] = []
    try:
        judged = campaign(args.database, args.seed, args.first, args.trials, directory)
    finally:
        bad = [one for one in judged if one.problems]
        if len(judged) == args.trials and not bad:
            subprocess.run(("umount", "--lazy", str(directory / "disk")), check=False)
            shutil.rmtree(directory, ignore_errors=True)
        else:
            sys.stdout.write(f"The logs of the workers are in {directory}.\n")
    if args.result:
        args.result.write_text(json.dumps(summary(judged, time.monotonic() - began_s)))
    return 1 if bad else 0


def summary(judged: list[Judged], wall_s: float) -> dict[str, object]:
    return {
        "trials": len(judged),
        "states": Counter(state for one in judged for state in one.states),
        "faults": Counter(step.fault for one in judged for step in one.schedule.steps),
        "problems": [f"{one.schedule.title}: {problem}" for one in judged for problem in one.problems],
        "wall_s": wall_s,
    }


if __name__ == "__main__":
    sys.exit(main())
