"""Finds out what this machine can do by trying it; each missing capability names its remedy."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple

from emulator.host.abstract_names import users_are_told
from emulator.host.namespaces import succeeds_apart
from emulator.host.places import search_path
from emulator.host.rights import Rights, grants, rights
from emulator.network.shaping import kernel_has
from engine.domain.command_name import to_install
from engine.domain.errors import HostError

OWN_USERS = "user namespaces"
"""The capability without which emulations run with the machine's root."""


class Capability(NamedTuple):
    """A capability of this machine. Emulation needs all `needed` ones. For the others `detail` says what
    replaces them.
    """

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
        """Check that every needed capability is there; raises `HostError` about the first that is missing."""
        for item in self.items:
            if item.needed and not item.ok:
                raise HostError(f"This machine cannot emulate: {item.detail}. {item.remedy}")


@cache
def probe() -> Capabilities:
    """Try everything, once per process (about 0.2 s)."""
    able = rights().kind != "none"
    return Capabilities(
        items=(
            _isolation(rights()),
            _tool("mnexec", "Mininet's mnexec enters namespaces", "apt-get install mininet"),
            _tool("ifconfig", "Mininet brings interfaces up with ifconfig", "apt-get install net-tools"),
            _tool("tc", "tc shapes links", "apt-get install iproute2"),
            _mininet(),
            Capability(
                "tbf",
                able and kernel_has("tbf"),
                True,
                "the kernel's tbf shapes links",
                "Use a kernel with sch_tbf (modprobe sch_tbf).",
            ),
            Capability(
                "netem",
                able and kernel_has("netem"),
                False,
                "the kernel's netem; without it delays are kept by the receiver, and relay "
                "processes do delay together with loss, and jitter",
                "Use a kernel with sch_netem (modprobe sch_netem).",
            ),
            Capability(
                "nft",
                able and _nft_drops(),
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
                "sudo modprobe tun && sudo chmod 666 /dev/net/tun",
            ),
            Capability(
                "owners of turns",
                users_are_told(),
                False,
                "the kernel says whose turn it is, so that other users cannot hold emulations up",
                "Use a kernel with unix_diag (sudo modprobe unix_diag): without it any user here can.",
            ),
            *(Capability(one.name, one.ok, False, one.what, f"To get it: {one.line}.") for one in grants()),
        ),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=platform.release(),
        cgroup_version=2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1,
    )


def _tool(name: str, why: str, remedy: str) -> Capability:
    return Capability(name, shutil.which(name, path=search_path()) is not None, True, why, f"sudo {remedy}")


def _mininet() -> Capability:
    ok = importlib.util.find_spec("mininet") is not None
    return Capability(
        "mininet",
        ok,
        True,
        "the Python package mininet builds the nodes and links",
        f"To get it: {to_install('emulator')}.",
    )


def _isolation(found: Rights) -> Capability:
    if found.kind == "own":
        what = "every emulation runs in namespaces of its own, and has rights there only"
        return Capability(OWN_USERS, True, True, what)
    what = f"{found.why}, so emulations run with the machine's root" if found.kind == "root" else found.why
    return Capability(OWN_USERS, False, found.kind == "none", what, found.remedy)


def _nft_drops() -> bool:
    rules = "add table inet t\nadd chain inet t c { type filter hook prerouting priority -300; }\n"
    rules += "add rule inet t c numgen random mod 100 < 1 drop\n"
    return succeeds_apart(("nft", "-f", "-"), rules)


def _tun() -> bool:
    try:
        with Path("/dev/net/tun").open("rb"):
            return True
    except OSError:
        return False
