"""Network interfaces of the calling thread's namespace, without starting a process."""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from engine.domain.errors import HostError

SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914  # linux/sockios.h
IFF_UP = 1  # linux/if.h
FLAGS = struct.Struct("16sH14x")  # struct ifreq: name and flags


def set_down(interface: str) -> None:
    """Take `interface` down, as `ip link set INTERFACE down` does, in a fraction of a millisecond.

    Raises `HostError` if there is no such interface, or without the right to.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock, SIOCGIFFLAGS, FLAGS.pack(interface.encode(), 0))
            _, flags = FLAGS.unpack(answer)
            fcntl.ioctl(sock, SIOCSIFFLAGS, FLAGS.pack(interface.encode(), flags & ~IFF_UP))
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise HostError(f"taking the interface {interface} down failed: {reason}.") from error
