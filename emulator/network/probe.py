"""Finds out what this machine can do by trying it; each missing capability names its remedy."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from emulator.network.shaping import kernel_has
from engine.domain.errors import HostError


class Capability(NamedTuple):
    """Emulation needs all `needed` ones. For the others `detail` says what replaces them."""

    name: str
    ok: bool
    needed: bool
    detail: str
    remedy: str = ""


class Capabilities(NamedTuple):
    """All capabilities and figures of this host."""

    items: tuple[Capability, ...]
    cores: int
    memory_bytes: int
    kernel: str
    cgroup_version: int

    def has(self, name: str) -> bool:
        """Whether the capability called `name` works; an unknown name is a programming error."""
        return next(item.ok for item in self.items if item.name == name)

    def require(self) -> None:
        """Raises `HostError` with one sentence about the first needed capability that is missing."""
        for item in self.items:
            if item.needed and not item.ok:
                raise HostError(f"This machine cannot emulate: {item.detail}. {item.remedy}")


@cache
def probe() -> Capabilities:
    """Try everything, once per process (about 0.2 s)."""
    root = os.geteuid() == 0
    return Capabilities(
        items=(
            Capability(
                "root",
                root,
                True,
                "emulation makes network namespaces, which needs root",
                "Run it as root, or leave the emulate queue to a worker that is root.",
            ),
            _isolation(root),
            _tool("mnexec", "Mininet's mnexec enters namespaces", "apt-get install mininet"),
            _tool("ifconfig", "Mininet brings interfaces up with ifconfig", "apt-get install net-tools"),
            _tool("tc", "tc shapes links", "apt-get install iproute2"),
            _mininet(),
            Capability(
                "tbf",
                root and kernel_has("tbf"),
                True,
                "the kernel's tbf shapes links",
                "Use a kernel with sch_tbf (modprobe sch_tbf).",
            ),
            Capability(
                "netem",
                root and kernel_has("netem"),
                False,
                "the kernel's netem; without it delays are kept by the receiver, and relay "
                "processes do delay together with loss, and jitter",
                "Use a kernel with sch_netem (modprobe sch_netem).",
            ),
            Capability(
                "nft",
                root and _nft_drops(),
                False,
                "nft drops packets at random; without it and netem, relay processes do",
                "apt-get install nftables",
            ),
            Capability(
                "tun",
                _tun(),
                False,
                "TUN devices, between which relay processes delay and drop packets; without them and "
                "netem, jitter and delay together with loss are refused",
                "modprobe tun",
            ),
            Capability(
                "sched_fifo",
                _realtime(),
                False,
                "real-time priority keeps wake-ups punctual on a busy host",
                "Run as root, or raise RLIMIT_RTPRIO.",
            ),
        ),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=platform.release(),
        cgroup_version=2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1,
    )


def _tool(name: str, why: str, remedy: str) -> Capability:
    return Capability(name, shutil.which(name) is not None, True, why, remedy)


def _mininet() -> Capability:
    ok = importlib.util.find_spec("mininet") is not None
    return Capability(
        "mininet",
        ok,
        True,
        "the Python package mininet builds the nodes and links",
        "Install the project's requirements into its virtual environment: ./loom up does it.",
    )


def _isolation(root: bool) -> Capability:
    line = ("unshare", "-n", "-m", "-p", "-f", "--mount-proc", "true")
    return Capability(
        "namespaces",
        root and _succeeds(line),
        True,
        "every emulation runs in private network, mount and process namespaces",
        "Allow unshare: in a container, run it privileged (CAP_SYS_ADMIN, CAP_NET_ADMIN).",
    )


def _nft_drops() -> bool:
    rules = "add table inet t\nadd chain inet t c { type filter hook prerouting priority -300; }\n"
    rules += "add rule inet t c numgen random mod 100 < 1 drop\n"
    return _succeeds(("unshare", "-n", "nft", "-f", "-"), rules)


def _tun() -> bool:
    try:
        with Path("/dev/net/tun").open("rb"):
            return True
    except OSError:
        return False


def _realtime() -> bool:
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, *before)
    except OSError:
        return False
    return True


def _succeeds(line: tuple[str, ...], text: str = "") -> bool:
    try:
        return subprocess.run(line, input=text.encode(), capture_output=True, check=False).returncode == 0
    except OSError:
        return False
