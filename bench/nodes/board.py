"""A board that is played: a user, a home and a share of a core of its own, at the end of a cable."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.trials.lan import Cable
from bench.trials.servers import wait_for
from emulator.host.leftovers import Process, children
from webapp.ops.places import ROOT

FIRST_USER = 61_000
"""Users that no machine's list has."""
CPU = Path("/sys/fs/cgroup/cpu")
PERIOD_US, LONG_PERIOD_US = 2000, 100_000
SHARES, SERVERS_SHARES = 200_000, 4_000
"""Against 1024 of each process that is none of this: what else the machine does takes little from a board,
and so does the server, which is another machine.
"""


class Share(NamedTuple):
    """A board's part of this machine: a core, and how much of its time. `is_slow`: somebody takes the rest
    (`taker.py`), and a quota is there to tell the board, and never used up.
    """

    core: int
    frac: float = 1.0
    is_slow: bool = False


class Board:
    """Board `number`, from 0, below `directory`. It has joined while `process` runs."""

    def __init__(self, number: int, share: Share, directory: Path):
        self.name, self.share = f"pi-{number + 1}", share
        self.user = FIRST_USER + number
        self.cable = Cable(self.name, 10 + number)
        self.home = directory / self.name
        self.home.mkdir(exist_ok=True)
        (self.home / "tmp").mkdir(exist_ok=True)
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, self.user, self.user, follow_symlinks=False)
        self.home.chmod(0o700)
        self.log = self.home / "node.log"
        self.group = Group(share.frac, period_us=LONG_PERIOD_US if share.is_slow else PERIOD_US)
        self.token = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        url: str,
        more: Sequence[str] = (),
        program: Path | None = None,
        interpreter: Sequence[str] = (),
    ) -> None:
        """Start the node as its owner does, with `more` arguments, of the checkout `program`, which is this
        one. `interpreter` stands before the program.
        """
        loom = str((program or ROOT) / "loom")
        line_of_owner = [sys.executable, *interpreter, loom, "node", "--join", url, "--token", self.token]
        line = [
            # `ip netns exec` would hide the control groups from it
            *f"nsenter --net=/run/netns/{self.name} taskset -c {self.share.core}".split(),
            *f"setpriv --reuid {self.user} --regid {self.user} --clear-groups --no-new-privs".split(),
            *("--bounding-set=-all", "--inh-caps=-all"),
            *line_of_owner,
            *more,
        ]
        environment = {
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "PATH": os.environ["PATH"],
            "OMP_NUM_THREADS": "1",
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                line, cwd=self.home, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.group.take(self.process.pid)

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None, "it was started"
        self.process.send_signal(number)

    def send_all(self, number: signal.Signals) -> None:
        """To the node and all that it has started."""
        for one in (*self.processes(), None):
            with suppress(ProcessLookupError):
                os.kill(one.pid, number) if one else self.send(number)

    def measured_as(self, home: Path) -> None:
        """Take the calibration of the board of this home for this one's, before it starts."""
        for path in (home / ".cache" / "edgeloom").glob("*.json"):
            here = self.home / ".cache" / "edgeloom" / path.name
            here.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, here)
        for path in self.home.rglob("*"):
            os.chown(path, self.user, self.user)

    def end(self) -> None:
        if self.process is not None:
            self.send(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def processes(self) -> list[Process]:
        """What runs of it beside the node."""
        return [] if self.process is None else below(self.process.pid)

    def left(self) -> list[str]:
        """What runs have left in its home."""
        places = ("tmp/*", ".cache/edgeloom/node-runs/*", ".cache/edgeloom/slices/*.part")
        return [str(path.relative_to(self.home)) for place in places for path in self.home.glob(place)]

    def forget(self) -> None:
        """Remove what it has kept of weights."""
        shutil.rmtree(self.home / ".cache" / "edgeloom" / "slices", ignore_errors=True)


def below(pid: int) -> list[Process]:
    found = children(pid)
    return found + [deeper for child in found for deeper in below(child.pid)]


class Group:
    """A control group that has a fraction of a core. Its `shares` are those against other groups."""

    def __init__(self, frac: float = 1.0, shares: int = SHARES, period_us: int = PERIOD_US):
        self.place = Path(tempfile.mkdtemp(prefix="edgeloom-", dir=CPU))
        self.place.chmod(0o755)  # a process may read what it is granted
        (self.place / "cpu.shares").write_text(str(shares))
        if frac < 1:
            (self.place / "cpu.cfs_period_us").write_text(str(period_us))
            (self.place / "cpu.cfs_quota_us").write_text(str(int(frac * period_us)))

    def take(self, pid: int) -> None:
        (self.place / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Once its processes have ended; the kernel takes a moment to see that."""
        wait_for(lambda: not (self.place / "cgroup.procs").read_text(), "the end of a board's processes")
        self.place.rmdir()
