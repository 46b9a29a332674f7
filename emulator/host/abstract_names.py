"""Names in the kernel's abstract namespace of Unix sockets, and the user who holds each.

All users of a machine see and may take such names. None is a file that one could plant or lock others out
with, and the kernel frees a name with the last process that holds it.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOCKETS = Path("/proc/net/unix")
HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, kind, flags, sequence, sender
REQUEST = struct.Struct("=BBHIIIII")  # struct unix_diag_req
ANSWER_BYTES = 16  # struct unix_diag_msg
ATTRIBUTE = struct.Struct("=HH")  # struct nlattr: length, kind

# linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST_DUMP = 4, 20, 0x301
NLMSG_ERROR, NLMSG_DONE = 2, 3
ALL_STATES, SHOW_NAME_AND_USER = 0xFFFFFFFF, 0x41
NAME, USER = 0, 7
MOST_BYTES = 1 << 16


class Held(NamedTuple):
    """A name without its leading zero byte, and the user whose process made its socket; None where this
    kernel does not tell.
    """

    name: str
    user: int | None


def hold(name: str) -> socket.socket | None:
    """A socket that holds this name, or None if another process holds it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0{name}")
    except OSError as error:
        holder.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return holder


def held(prefix: str) -> list[Held]:
    """The names that begin with `prefix` and are held now."""
    try:
        return [one for one in _told_by_the_kernel() if one.name.startswith(prefix)]
    except OSError:
        pattern = re.compile(rf"@({re.escape(prefix)}.*)$", re.MULTILINE)
        return [Held(name, None) for name in pattern.findall(SOCKETS.read_text(errors="replace"))]


def users_are_told() -> bool:
    """Whether this kernel tells whose a name is."""
    name = f"edgeloom-whose-{os.getpid()}"
    with hold(name) or socket.socket(socket.AF_UNIX):
        return any(one.user is not None for one in held(name))


def _told_by_the_kernel() -> Iterator[Held]:
    """All names, by sock_diag(7): since Linux 5.3 with their users. Raises `OSError` where it is missing."""
    request = REQUEST.pack(socket.AF_UNIX, 0, 0, ALL_STATES, 0, SHOW_NAME_AND_USER, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as kernel:
        header = HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0)
        kernel.send(header + request)
        while True:
            messages = kernel.recv(MOST_BYTES)
            while messages:
                length, kind, *_ = HEADER.unpack_from(messages)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    raise OSError("the kernel has no sock_diag for Unix sockets")
                found = dict(_attributes(messages[HEADER.size + ANSWER_BYTES : length]))
                if found.get(NAME, b"")[:1] == b"\0":
                    user = int.from_bytes(found[USER], sys.byteorder) if USER in found else None
                    yield Held(found[NAME][1:].decode(errors="replace"), user)
                messages = messages[_aligned(length) :]


def _attributes(packed: bytes) -> Iterator[tuple[int, bytes]]:
    while len(packed) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(packed)
        yield kind, packed[ATTRIBUTE.size : length]
        packed = packed[_aligned(length) :]


def _aligned(length: int) -> int:
    return (length + 3) & ~3
