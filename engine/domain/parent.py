"""Lets a process end with the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
"""From Linux' <linux/prctl.h>: the signal that a process gets when its parent has died."""


def end_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this process the signal `number` when the thread of the process `parent` that
    started it has ended; ends at once if the parent has ended before, which no signal would say.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)
