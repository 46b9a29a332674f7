"""The cores of one host that all simulated devices share: how a run at native speed is predicted.

On a cluster every device has its own processor. A run at native speed has one host, and every device is a
process of it with two threads (`engine/worlds/real/native.py`): the main thread computes short operations,
sends and receives, one thing after the other; the compute thread computes long operations meanwhile. While
k threads have work, all of it takes `slowdown(k)` times as long as alone (`RuntimeCosts.slowdown_of`),
because cores, caches and memory bandwidth are shared. Processes that are bound to cores share theirs: on a
core with n of them, work takes n times as long, and `slowdown` of the number of busy cores besides. Work
progresses together (processor sharing): when a piece of it begins or ends, the rate of others changes. The
host's kernel carries the bytes of messages over emulated links, which is work of the same cores.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from engine.worlds.simulated.kernel import SimulationKernel

DONE_FRAC = 1e-9


class Work:
    """Work under way: `left_s` are the seconds that it would still take alone, on `core` if it is bound."""

    __slots__ = ("core", "left_s", "on_end", "tolerance_s")

    def __init__(self, duration_s: float, on_end: Callable[[], None], core: int | None):
        self.left_s, self.core = duration_s, core
        self.tolerance_s = duration_s * DONE_FRAC
        self.on_end = on_end


class SharedCores:
    """Calls `on_end` of each piece of work when it has ended. A byte on a link is work of `link_byte_s`."""

    def __init__(self, kernel: SimulationKernel, slowdown: Callable[[int], float], link_byte_s: float = 0.0):
        self.kernel, self.slowdown, self.link_byte_s = kernel, slowdown, link_byte_s
        self.under_way: list[Work] = []
        self._advanced_s = 0.0
        self._version = 0

    def begin(self, duration_s: float, on_end: Callable[[], None], core: int | None = None) -> None:
        """Start work that takes `duration_s` alone, on one core or wherever there is room."""
        self._advance()
        self.under_way.append(Work(duration_s, on_end, core))
        self._schedule_next()

    def is_idle(self, core: int | None) -> bool:
        """Whether nothing is under way on `core`; on any core if it is None."""
        return all(work.core != core for work in self.under_way) if core is not None else not self.under_way

    def carry(self, size_bytes: int, core: int | None = None) -> None:
        """Let the kernel carry a message over the links: its sender and its receiver do not wait for this
        work.
        """
        if self.link_byte_s:
            self.begin(size_bytes * self.link_byte_s, lambda: None, core)

    def clear(self) -> None:
        """Abandon everything that is under way."""
        self.under_way.clear()
        self._version += 1

    def _factors(self) -> dict[int | None, float]:
        """Core → how many times as long as alone the work that is under way there takes."""
        counts = Counter(work.core for work in self.under_way)
        if None in counts:
            return dict.fromkeys(counts, self.slowdown(len(self.under_way)))
        busy = self.slowdown(len(counts))
        return {core: busy * count for core, count in counts.items()}

    def _advance(self) -> None:
        elapsed_s, self._advanced_s = self.kernel.now_s - self._advanced_s, self.kernel.now_s
        if self.under_way and elapsed_s > 0:
            factors = self._factors()
            for work in self.under_way:
                work.left_s -= elapsed_s / factors[work.core]

    def _schedule_next(self) -> None:
        """End the first work when it is through, unless others begin or end before that."""
        self._version += 1
        if self.under_way:
            version, factors = self._version, self._factors()
            next_s = max(0.0, min(work.left_s * factors[work.core] for work in self.under_way))
            self.kernel.schedule(self.kernel.now_s + next_s, lambda: self._end_first(version))

    def _end_first(self, version: int) -> None:
        if version != self._version:
            return
        self._advance()
        factors = self._factors()
        first_s = min(work.left_s * factors[work.core] for work in self.under_way)
        ended = [
            work for work in self.under_way if work.left_s * factors[work.core] <= first_s + work.tolerance_s
        ]
        self.under_way = [work for work in self.under_way if work not in ended]
        self._schedule_next()
        for work in ended:
            work.on_end()


class Thread:
    """A thread of a device's process: it does one thing at a time on the shared cores, in order."""

    def __init__(self, cores: SharedCores, core: int | None = None):
        self.cores, self.core = cores, core
        self._queued: deque[Callable[[], None]] = deque()  # the first one is under way

    @property
    def is_busy(self) -> bool:
        return bool(self._queued)

    def run(self, duration_s: float, on_end: Callable[[float], None]) -> None:
        """Work for `duration_s` (alone) when it is its turn, then call `on_end(start)`."""

        def begin() -> None:
            start_s = self.cores.kernel.now_s
            self.cores.begin(duration_s, lambda: end(start_s), self.core)

        def end(start_s: float) -> None:
            self._queued.popleft()
            if self._queued:
                self._queued[0]()
            on_end(start_s)

        self._queued.append(begin)
        if len(self._queued) == 1:
            begin()

    def clear(self) -> None:
        """Forget everything: the cores must be cleared as well."""
        self._queued.clear()


class Threads:
    """The main thread and the compute thread of one device's process, which may be bound to one core. A
    message takes `wakeup_s` longer where it finds the core idle.
    """

    def __init__(self, cores: SharedCores, core: int | None = None, wakeup_s: float = 0.0):
        self.cores, self.core, self.wakeup_s = cores, core, wakeup_s
        self.main, self.compute = Thread(cores, core), Thread(cores, core)

    def carry(self, size_bytes: int) -> None:
        """Let the host's kernel carry a message of this device."""
        self.cores.carry(size_bytes, self.core)

    def receive(self, duration_s: float, on_end: Callable[[float], None]) -> None:
        """Read a message, which takes `duration_s` where the device is awake."""
        asleep = self.wakeup_s and self.cores.is_idle(self.core)
        self.main.run(duration_s + (self.wakeup_s if asleep else 0.0), on_end)

    def for_operation(self, handed_over: bool) -> Thread:
        """The thread of an operation: the compute thread if it is `handed_over` or others wait there."""
        return self.compute if handed_over or self.compute.is_busy else self.main

    def clear(self) -> None:
        self.main.clear()
        self.compute.clear()
