"""How much of a core the control groups of a process grant it, as those of a rented server's container may.

Processor time does not show it: a group that has used up its quota waits, and its clock stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


@cache
def granted_frac() -> float:
    """The part of a core's time that a thread gets which computes all the time: 1, or what the smallest quota
    of its groups is.
    """
    try:
        return min((1.0, *_quotas(OWN.read_text())))
    except OSError:  # a group that this user may not look at
        return 1.0


def _quotas(own: str) -> Iterator[float]:
    """The quotas of the groups of /proc/self/cgroup's lines, and of those around them, in cores."""
    for line in own.splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if not path:  # no line of a group
            continue
        if not controllers:
            roots = (CGROUPS, CGROUPS / "unified")
        elif "cpu" in controllers.split(","):
            roots = (CGROUPS / "cpu", CGROUPS / controllers)
        else:
            continue
        for root in roots:
            group = root / path.lstrip("/")
            for place in (group, *(parent for parent in group.parents if parent.is_relative_to(root))):
                yield from _quota(place)


def _quota(place: Path) -> Iterator[float]:
    """The quota of one group, in version 2's file or version 1's: none where time is not limited."""
    if (both := place / "cpu.max").exists():
        quota, _, period = both.read_text().partition(" ")
    elif (first := place / "cpu.cfs_quota_us").exists():
        quota, period = first.read_text(), (place / "cpu.cfs_period_us").read_text()
    else:
        return
    if quota.strip().isdecimal() and period.strip().isdecimal() and int(period):  # not max, -1 or nothing
        yield int(quota) / int(period)
