"""A network of boards on one machine: a switch, and a cable of some rate to each namespace. Needs root, and a
network namespace of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from emulator.network.shaping import Shape, piece_limit, tc_lines
from webapp.ops.places import ROOT

SWITCH = "lan"
SERVER = "10.77.0.1"


def run(line: str) -> None:
    subprocess.run(line.split(), check=True)


def build_switch() -> None:
    """Make the switch, at which the server listens too."""
    run("ip link set lo up")
    run("mount -t tmpfs edgeloom-lan /run")  # for names of namespaces
    run(f"ip link add {SWITCH} type bridge")
    run(f"ip address add {SERVER}/24 dev {SWITCH}")
    run(f"ip link set {SWITCH} up")


class Cable:
    """Joins a new namespace `name` to the switch, as host `number`."""

    def __init__(self, name: str, number: int):
        self.name, self.number, self.ours = name, number, f"cable{number}"
        self.address = f"10.77.0.{number}"
        for line in (
            f"ip netns add {name}",
            f"ip link add {self.ours} type veth peer name eth0 netns {name}",
            f"ip link set {self.ours} master {SWITCH} up",
            f"ip -n {name} address add {self.address}/24 dev eth0",
            f"ip -n {name} link set eth0 up",
            f"ip -n {name} link set lo up",
        ):
            run(line)

    def shape(self, bit_per_s: float) -> None:
        """Let it carry so much payload each way, as an emulated link does."""
        shape = Shape(bit_per_s)
        for inside, interface in (("", self.ours), (f"-n {self.name} ", "eth0")):
            run(f"ip {inside}{piece_limit(interface, shape)}")
            for line in tc_lines(interface, shape, "replace"):
                run(f"tc {inside}{line}")

    def cut(self) -> None:
        run(f"ip link set {self.ours} down")

    def mend(self) -> None:
        run(f"ip link set {self.ours} up")


def open_to_all(*needed: Path) -> None:
    """Let every user of this mount namespace reach these folders: what other folders a closed one has is
    hidden from all.
    """
    closed: dict[Path, list[Path]] = {}
    for path in needed:
        for parent in reversed(path.parents):
            if not parent.stat().st_mode & 0o001:
                closed.setdefault(parent, []).append(path)
                break
    for folder, paths in closed.items():
        with tempfile.TemporaryDirectory() as aside:
            kept = [Path(aside) / str(number) for number in range(len(paths))]
            for path, place in zip(paths, kept, strict=True):
                place.mkdir()
                run(f"mount --bind {path} {place}")
            run(f"mount -t tmpfs -o mode=755 edgeloom-cover {folder}")
            for path, place in zip(paths, kept, strict=True):
                path.mkdir(parents=True, exist_ok=True)
                run(f"mount --move {place} {path}")


def python_places() -> tuple[Path, ...]:
    """The folders that running this checkout's code needs."""
    return tuple(dict.fromkeys(Path(place).resolve() for place in (ROOT, sys.prefix, sys.base_prefix)))
