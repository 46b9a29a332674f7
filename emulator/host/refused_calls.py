"""What the kernel refuses a session beside its namespaces, which do not keep these apart: `refuse_calls()`.

A socket of another family, such as AF_VSOCK, reaches the host of a virtual machine, and keys are those of
whoever has started EdgeLoom. io_uring opens sockets past a filter of calls. Docker's default profile refuses
the same.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
from typing import NamedTuple

from emulator.host.enter import syscall

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET)
"""The families of sockets that a session may open: all others are unknown to it."""


class Numbers(NamedTuple):
    """What a processor calls itself and the calls (linux/audit.h, asm/unistd.h)."""

    architecture: int
    seccomp: int
    socket: int
    absent: tuple[int, ...]
    """add_key, request_key, keyctl and io_uring_setup."""


NUMBERS = {
    "x86_64": Numbers(0xC000003E, 317, 41, (248, 249, 250, 425)),
    "aarch64": Numbers(0xC00000B7, 277, 198, (217, 218, 219, 425)),
}
X32 = 0x40000000
"""From this number on, a call is one of x86's third interface; no other processor has so many."""

# linux/bpf_common.h, linux/seccomp.h
LOAD, IS_EQUAL, IS_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16
ALLOW, ERROR = 0x7FFF0000, 0x00050000
SET_FILTER, KEEP_SPEED = 1, 4  # the second: without slowing the processor's speculation


class Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction)))


def refuse_calls() -> None:
    """Refuse them to this process and all that it starts, for ever. It must have no_new_privs."""
    numbers = NUMBERS.get(platform.machine())
    if numbers is None:
        return
    steps = instructions(numbers)
    array = (Instruction * len(steps))(*(Instruction(*step) for step in steps))
    program = Program(len(steps), array)
    syscall(numbers.seccomp, SET_FILTER, KEEP_SPEED, ctypes.byref(program))


def instructions(numbers: Numbers) -> list[tuple[int, int, int, int]]:
    """The filter: code, steps to skip if it is so and if it is not, operand."""
    absent, unknown = (RETURN, 0, 0, ERROR | errno.ENOSYS), (RETURN, 0, 0, ERROR | errno.EAFNOSUPPORT)
    allowed = (RETURN, 0, 0, ALLOW)
    steps = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (IS_EQUAL, 1, 0, numbers.architecture),
        absent,
        (LOAD, 0, 0, NUMBER_AT),
        (IS_AT_LEAST, 0, 1, X32),
        absent,
    ]
    for number in numbers.absent:
        steps += [(IS_EQUAL, 0, 1, number), absent]
    steps += [(IS_EQUAL, 1, 0, numbers.socket), allowed, (LOAD, 0, 0, FIRST_ARGUMENT_AT)]
    for family in FAMILIES:
        steps += [(IS_EQUAL, 0, 1, family), allowed]
    return [*steps, unknown]
