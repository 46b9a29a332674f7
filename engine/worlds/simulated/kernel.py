"""A discrete-event simulation kernel: a virtual clock, timed actions, and programs that wait for them.

Modelled on simpy's `Environment`. A heap of (time, priority, serial, action) drives the clock: `step` takes
the first entry, sets `now_s` to its time and calls the action. The serial number keeps the order in which
actions were scheduled for the same time and priority, so two runs of one simulation are identical.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from engine.domain.errors import Cancelled, PeerFailed
from engine.worlds.common.programs import Handle, Program

Action = Callable[[], None]

FAULT = -1
"""Priority of faults: first at their time. `cancel_actions` keeps them when the programs are halted."""
NORMAL = 0
"""Priority of the actions of programs, devices and messages."""
LAST = 1
"""Priority of actions that must run after all others of the same time."""

ACTIONS_BETWEEN_STOP_CHECKS = 2000


class Host(Protocol):
    """The interface of a device that the kernel uses."""

    def run_program(self, program: Program, handle: Handle | None) -> bool:
        """Run `program`, for which `handle` is done, until it waits again; True if it has ended."""


class SimulationKernel:
    """`now_s` is the virtual time; `programs` are those that have not ended, each with its host."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.programs: dict[Program, Host] = {}  # in the order of their start
        self._heap: list[tuple[float, int, int, Action]] = []
        self._serial = 0

    def schedule(self, time_s: float, action: Action, priority: int = NORMAL) -> None:
        """Call `action` at virtual time `time_s`; at equal times, lower priorities come first.

        Raises `ValueError` if that is in the past: the clock does not go back.
        """
        if time_s < self.now_s:
            raise ValueError(f"An action was scheduled for {time_s} s, but it is {self.now_s} s.")
        self._serial += 1
        heappush(self._heap, (time_s, priority, self._serial, action))

    def cancel_actions(self, keep_priority: int) -> None:
        """Cancel all scheduled actions but those of one priority."""
        self._heap = [entry for entry in self._heap if entry[1] == keep_priority]
        heapify(self._heap)

    def step(self) -> None:
        """Go to the time of the next action and call it. Raises `IndexError` if none is scheduled."""
        self.now_s, _, _, action = heappop(self._heap)
        action()

    def run(
        self,
        is_over: Callable[[], bool],
        when_idle: Callable[[], bool],
        should_stop: Callable[[], bool] = lambda: False,
        check_time: Callable[[float], None] = lambda time_s: None,
    ) -> None:
        """Step until `is_over()`. `check_time` gets the time of every step and may raise.

        If no action is scheduled, `when_idle()` schedules one and returns True, or returns False to end the
        run. Raises what actions and programs raise, and `Cancelled` if `should_stop()`.
        """
        actions = 0
        while not is_over():
            if not self._heap and not when_idle():
                return
            check_time(self._heap[0][0])
            self.step()
            actions += 1
            if actions % ACTIONS_BETWEEN_STOP_CHECKS == 0 and should_stop():
                raise Cancelled("The prediction was stopped.", time_s=self.now_s)

    # programs

    def start(self, program: Program, host: Host) -> None:
        """Resume `program` for the first time at its own `now_s`."""
        self.programs[program] = host
        self.schedule(program.now_s, lambda: self.resume(program))

    def resume(self, program: Program, handle: Handle | None = None) -> None:
        """Run `program` until it waits again, unless it has ended or was closed.

        Raises the error that ended it, but not a `PeerFailed` for which another program waits: that one gets
        the error where it waits.
        """
        host = self.programs.get(program)
        if host is None or not host.run_program(program, handle):
            return
        del self.programs[program]
        error = program.handle.error
        if error is not None and not (isinstance(error, PeerFailed) and program.handle.waiters):
            raise error
        self.finish(program.handle, program.handle.value)

    def finish(self, handle: Handle, value: Any) -> None:
        """Mark `handle` as done now, and resume the programs that wait for it, in the order they came."""
        handle.done, handle.value, handle.time_s = True, value, self.now_s
        waiters, handle.waiters = handle.waiters, []
        for program in waiters:
            self.resume(program, handle)

    def close_programs(self, rank: int | None = None) -> None:
        """Close the programs of device `rank`, or all: they are never resumed."""
        for program in list(self.programs):
            if rank is None or program.rank == rank:
                program.close()
                del self.programs[program]
