"""What this machine lets an emulation do: found out by entering a room as every session does.

An emulation needs no rights outside its own namespaces. Where the kernel forbids user namespaces, it falls
back to the machine's root, if it was started as root; else it cannot run here.
"""

from __future__ import annotations

import grp
import json
import os
import resource
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from emulator.host import enter
from emulator.host.enter import NICENESS, Room
from emulator.host.memory import may_limit
from emulator.host.priority import LOOP_PRIORITY, STARTER_VARIABLE
from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError

ENTER = Path(enter.__file__)
IDENTITY = 64999
"""The number of the user and group that root becomes for an emulation; no account has it."""

EVERYBODY = ["0", "0", "4294967295"]
"""The map of the machine's own users (/proc/self/uid_map)."""

REASONS = (
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor forbids user namespaces to ordinary programs",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "the kernel is set to forbid user namespaces to ordinary users",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "the kernel is set to allow no user namespaces",
        "sudo sysctl -w user.max_user_namespaces=10000",
    ),
)
"""Settings below /proc/sys that forbid user namespaces; the line with which an administrator allows them."""


class Rights(NamedTuple):
    """What kind of root an emulation can be. `own`: it is root in a user namespace only; `root`: it is the
    machine's root; `none`: it is impossible. `why` and `remedy` say what forbids user namespaces.
    """

    kind: Literal["own", "root", "none"]
    why: str = ""
    remedy: str = ""

    def require(self) -> None:
        """Check that this process may emulate; raises `HostError` with the remedy."""
        if self.kind == "none":
            raise HostError(f"This machine cannot emulate: {self.why}. {self.remedy}")

    @property
    def note(self) -> str:
        """The sentence for the report of an emulation that had the machine's root, or ""."""
        if self.kind != "root":
            return ""
        return f"The emulation ran with the machine's root rights, since {self.why}. {self.remedy}"


def is_machine_root() -> bool:
    """Whether this process is root outside any user namespace."""
    return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == EVERYBODY


def identity() -> int | None:
    """The user that an emulation becomes: none, unless this process is the machine's root."""
    return IDENTITY if is_machine_root() else None


@cache
def rights() -> Rights:
    """The rights of this process, tried once in some 50 ms; a session has what its starter has found."""
    if STARTER_VARIABLE in os.environ:
        return Rights("own")
    refusal = _refusal(own_users=True)
    if not refusal:
        return Rights("own")
    why, remedy = _reason(refusal, Path("/proc/sys"))
    if is_machine_root() and not _refusal(own_users=False):
        return Rights("root", why, remedy)
    return Rights("none", why, remedy)


def command(room: Room, program: tuple[str, ...]) -> tuple[str, ...]:
    """The command line of a process that enters `room` and becomes `program`: absolute path, arguments."""
    return (sys.executable, "-I", "-S", str(ENTER), json.dumps(room._asdict()), *program)


def _refusal(own_users: bool) -> str:
    """What the kernel says to a room like a session's; "" if it lets it be."""
    cores = tuple(sorted(os.sched_getaffinity(0)))
    covered = tuple(path for path in enter.MEMORY if Path(path).is_dir())
    room = Room(os.getpid(), identity(), own_users, "", cores, covered, ())
    program = shutil.which("true") or "/bin/true"
    done = subprocess.run(command(room, (program,)), capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason given"])[-1]


def _reason(refusal: str, settings: Path) -> tuple[str, str]:
    """Why user namespaces are refused, and what allows them. `settings` is /proc/sys."""
    for name, value, why, line in REASONS:
        path = settings / name
        if path.exists() and path.read_text().strip() == value:
            return why, f"An administrator allows them with `{line}`."
    return (
        f"the kernel refuses user namespaces ({refusal})",
        "In a container, start it with --privileged; elsewhere, see user_namespaces(7).",
    )


class Grant(NamedTuple):
    """A right that emulations can do without, and the line that gives it. `punctual`: a busy machine delays
    emulations that lack it.
    """

    name: str
    ok: bool
    punctual: bool
    what: str
    line: str


def grants() -> tuple[Grant, ...]:
    """What this process's emulations have of such rights, and how to get the others; none are a session's."""
    if STARTER_VARIABLE in os.environ:
        return ()
    root = is_machine_root()
    niceness = resource.getrlimit(resource.RLIMIT_NICE)[0]
    file = "sudo tee -a /etc/security/limits.d/edgeloom.conf, and log in again"
    group = _group()
    return (
        Grant(
            "real-time priority",
            _may_run_in_real_time(),
            True,
            "real-time priority keeps wake-ups punctual on a busy host",
            f"echo '@{group} - rtprio {LOOP_PRIORITY}' | {file}",
        ),
        Grant(
            "high priority",
            root or niceness >= 20 - NICENESS,
            True,
            "a high priority lets computing go before other programs of this host",
            f"echo '@{group} - nice {NICENESS}' | {file}",
        ),
        Grant(
            "memory limit",
            may_limit(),
            False,
            "a control group ends an emulation that needs more memory than it may have",
            f"systemd-run --user --scope {COMMAND} up, which starts it in a control group of this user",
        ),
    )


def _group() -> str:
    """The group of this process as limits.conf(5) takes it after an @."""
    number = os.getgid()
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:  # it has no name, as in a container
        return f":{number}"


def _may_run_in_real_time() -> bool:
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(LOOP_PRIORITY))
        os.sched_setscheduler(0, *before)
    except OSError:
        return False
    return True


def main() -> None:
    """Write why this machine cannot emulate, if so: for `./loom up`."""
    try:
        rights().require()
    except HostError as error:
        sys.stdout.write(f"{error}\n")
