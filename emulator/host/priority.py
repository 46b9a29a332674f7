"""Gives emulations priority over other processes of this host, since a late wake-up distorts a report.

Lateness of a sleeping thread on two cores under a load of ten (95 %, longest): unchanged 2.8 and 27 ms; nice
2.6 and 41; nice with short slices 1.7 and 9; real time 0.08 and 0.4. Therefore the first thread of a paced
device, which moves messages and keeps the time, runs in real time. Threads that compute do not: the kernel
stops real-time threads that fill a core for 50 ms of each second (sched_rt_runtime_us), which made every
fourth operation of 65 ms take 115. They are nice (`enter.py`), which leaves them nearly all of a core that
others use too.

A session has no right to real time. Its starter may have: the session sends it the processes over a socket,
with the kernel's own word for which they are (SCM_CREDENTIALS), since the numbers differ between namespaces.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading

from emulator.host.leftovers import children

LOOP_PRIORITY = 1
STARTER_VARIABLE = "EDGELOOM_STARTER"
"""The file descriptor, in a session, of the socket to its starter."""

CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
ANSWER_TIMEOUT_S = 5.0


def run_in_real_time(pid: int) -> None:
    """Give the first thread of process `pid` real-time priority, if this machine lets it."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        try:
            os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(LOOP_PRIORITY))
        except PermissionError:
            _ask_starter(pid)


def children_in_real_time(but: frozenset[int]) -> None:
    """Give the first thread of every child of this process real-time priority, except `but`."""
    for child in children(os.getpid()):
        if child.pid not in but:
            run_in_real_time(child.pid)


def _ask_starter(pid: int) -> None:
    """Ask the starter for real-time priority; returns once it has answered, or has ended."""
    descriptor = os.environ.get(STARTER_VARIABLE)
    if descriptor is None:
        return
    with socket.socket(fileno=os.dup(int(descriptor))) as starter:
        starter.settimeout(ANSWER_TIMEOUT_S)
        who = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, CREDENTIALS.pack(pid, os.getuid(), os.getgid()))
        with contextlib.suppress(OSError):
            starter.sendmsg([b"?"], [who])
            starter.recv(1)


def grant_real_time(sock: socket.socket) -> threading.Thread:
    """Answer the session at the other end of `sock`, on a thread that ends when it has closed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    thread = threading.Thread(target=_grant, args=(sock,), name="real-time", daemon=True)
    thread.start()
    return thread


def _grant(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the session is gone
        while True:
            data, notes, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
            if not data:
                return
            for _, _, note in notes:
                with contextlib.suppress(OSError):  # it has just ended, or this process may not either
                    priority = os.sched_param(LOOP_PRIORITY)
                    os.sched_setscheduler(CREDENTIALS.unpack(note)[0], os.SCHED_RR, priority)
            sock.sendall(b"!")
