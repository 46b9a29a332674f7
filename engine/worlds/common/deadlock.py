"""The sentence of a deadlock, the same in both worlds."""

from __future__ import annotations

from collections.abc import Iterable

from engine.domain.errors import Deadlock


def deadlock(waits: Iterable[str], now_s: float) -> Deadlock:
    """The error of programs that all wait while nothing is under way. `waits` are like `"b for recv L0.x from
    a"`.
    """
    blocked = ", ".join(sorted(set(waits)))
    return Deadlock(f"Deadlock at {now_s:.6f} s: every device waits ({blocked}).", time_s=now_s)
