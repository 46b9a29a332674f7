"""`python -m bench.trials.campaign`, which `./loom chaos --service` runs in namespaces of its own.

Inside, this process is the first one, sees only its own processes, and has its own loopback and mounts. So it
sees what a trial leaves behind, and the kernel removes what the campaign leaves behind.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from bench.trials import servers
from bench.trials.isolated import Found, carry_out, found_by, numbered_trials, parser_of
from bench.trials.outcomes import TrialOutcome, found_in, line_of
from bench.trials.schedule import schedule

DATABASES = ("sqlite", "postgresql")


def service_trials(seed: int, first: int, trials: int, database: str) -> Found:
    """Trials `first` to `first + trials` of a seed, as root. Raises `OpsError` if the campaign broke off."""
    numbers = ("--seed", str(seed), "--first", str(first), "--trials", str(trials))
    return found_by(__name__, *numbers, "--database", database)


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


def campaign(kind: str, seed: int, first: int, trials: int, directory: Path) -> Found:
    began_s = time.monotonic()
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    directory.chmod(0o755)
    disk = servers.Disk(directory / "disk", servers.DISK_BYTES[kind])
    redis, database = servers.Redis(directory), open_databases(kind, directory, disk)
    (directory / "clock").write_text("0.0")
    os.environ.update(environment(directory, redis.server.url, database.url))
    redis.start()
    database.start()
    importlib.import_module("bench.trials.django_ready")  # settings are read now
    from bench.trials.trial import Trials

    runner = Trials(redis, database, disk, directory)
    outcomes: list[TrialOutcome] = []
    try:
        for number in range(first, first + trials):
            outcomes.append(runner.play(schedule(seed, number)))
            sys.stdout.write(line_of(outcomes[-1]))
            sys.stdout.flush()
    finally:
        runner.stop()
        redis.kill()
        database.stop()
    subprocess.run(("umount", "--lazy", str(disk.directory)), check=False)
    return found_in(outcomes, time.monotonic() - began_s)


def main() -> int:
    parser = parser_of(__doc__)
    numbered_trials(parser, 100)
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0])
    args = parser.parse_args()
    play = partial(campaign, args.database, args.seed, args.first, args.trials)
    return carry_out(play, "trials", args.result)


if __name__ == "__main__":
    sys.exit(main())
