"""Starts and controls the relay processes (`relay.py`) that carry links between pairs of TAP interfaces."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from emulator.host.namespaces import inside
from emulator.network.layout import Direction, Interface
from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0  # linux/if_tun.h
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4 = 0x01, 0x02
PROGRAM = Path(__file__).with_name("relay.py")
QUEUE_FRAMES = 10_000
"""Frames that an interface queues until the relay reads them; the kernel would drop any beyond."""

ANSWER_TIMEOUT_S = 10.0


class Impairment(NamedTuple):
    """Delay, jitter and loss of one direction, in wall time."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss_frac: float = 0.0


class Relays:
    """The relay processes, one per core of this host at most; the relayed links are dealt out to them."""

    def __init__(self, ends: Sequence[tuple[Interface, Interface]], pids: Mapping[str, int]):
        """Make the interfaces `ends` in the namespaces of `pids` (by node) and start the processes.

        Raises `HostError`.
        """
        self._processes: list[subprocess.Popen[bytes]] = []
        self._controls: list[socket.socket] = []
        self._place: dict[Direction, tuple[int, int]] = {}
        count = min(len(ends), len(os.sched_getaffinity(0)))
        for index in range(count):
            self._start(index, ends[index::count], pids)

    def _start(
        self, process: int, ends: Sequence[tuple[Interface, Interface]], pids: Mapping[str, int]
    ) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.settimeout(ANSWER_TIMEOUT_S)
        descriptors: list[int] = []
        directions: list[tuple[int, int, str]] = []
        try:
            for pair in ends:
                taps = [open_tap(pids[end.node], end.name) for end in pair]
                descriptors += taps
                for end, source, target in zip(pair, taps, reversed(taps), strict=True):
                    self._place[end.link, end.forward] = (process, len(directions))
                    directions.append((source, target, f"{end.link} {end.forward}"))
            line = [sys.executable, "-S", "-E", str(PROGRAM), str(theirs.fileno()), json.dumps(directions)]
            self._processes.append(
                subprocess.Popen(line, pass_fds=(theirs.fileno(), *descriptors), stdin=subprocess.DEVNULL)
            )
        finally:
            theirs.close()
            for descriptor in descriptors:  # the interfaces exist as long as the relay has them open
                os.close(descriptor)
        self._controls.append(ours)

    def set(self, impairments: Mapping[Direction, Impairment]) -> None:
        """Set the impairments of relays; returns once all is in force. Raises `HostError` if a relay has
        ended.
        """
        by_process: dict[int, list[str]] = {}
        for direction, impairment in impairments.items():
            process, index = self._place[direction]
            by_process.setdefault(process, []).append(json.dumps([index, *impairment]))
        for process, lines in by_process.items():
            control, text = self._controls[process], "".join(f"{line}\n" for line in lines).encode()
            answer = b""
            try:
                control.sendall(text)
                while len(answer) < len(text) and (data := control.recv(1 << 16)):
                    answer += data
            except OSError as error:
                raise HostError(f"A relay of links does not answer: {error}: start the run again.") from error
            if answer != text:
                raise HostError("A relay of links has ended: start the run again.")

    def close(self) -> None:
        """End the processes; the kernel removes their interfaces."""
        for control in self._controls:
            control.close()
        for process in self._processes:
            process.wait()


def open_tap(pid: int, name: str) -> int:
    """A new TAP interface in the network namespace of `pid`; it exists as long as the file descriptor.

    Reading it gives TCP's unsegmented packets without checksums, each after a virtio header; they can be
    written to another such interface as they are. Segmented frames would cost twice the time per byte.
    """

    def make() -> int:
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        try:
            flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
            fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH14x", name.encode(), flags))
            fcntl.ioctl(descriptor, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4)
        except OSError as error:
            os.close(descriptor)
            raise HostError(
                f"The interface {name} could not be made: {error}: see {COMMAND} doctor."
            ) from error
        return descriptor

    return inside(pid, make)


def tap_lines(end: Interface) -> tuple[str, ...]:
    """The `ip -batch` lines that give a TAP interface the address and MTU of a veth end."""
    return (
        f"link set {end.name} address {end.mac}",
        f"link set {end.name} txqueuelen {QUEUE_FRAMES} mtu 1500",
    )
