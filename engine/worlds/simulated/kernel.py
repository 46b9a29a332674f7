"""A discrete-event simulation kernel: a virtual clock, timed actions, and programs that wait for them.

Modelled on simpy's `Environment`. A heap of (time, priority, serial, action) drives the clock: `step` takes
the first entry, sets `now_s` to its time and calls the action. The serial number keeps the order in which
actions were scheduled for the same time and priority, so two runs of one simulation are identical.

Most of what programs do is to start an operation and wait for it, with nothing else due before it ends. Then
the kernel runs ahead: it goes to the operation's end at once, without the heap, and the program continues.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from engine.domain.errors import Cancelled, OutOfTime, PeerFailed
from engine.worlds.common.programs import Handle, Program

Action = Callable[[], None]

FAULT = -1
"""Priority of faults: first at their time. `cancel_actions` keeps them when the programs are halted."""
NORMAL = 0
"""Priority of the actions of programs, devices and messages."""
LAST = 1
"""Priority of actions that must run after all others of the same time."""

ACTIONS_BETWEEN_STOP_CHECKS = 2000


class Operation(Handle):
    """An operation that ends at `end_s`: then `emit` gets its span, and the programs that wait continue."""

    __slots__ = ("emit", "end_s", "host", "kernel", "result", "serial", "span")

    def __init__(
        self,
        kernel: SimulationKernel,
        host: Host,
        what: str,
        end_s: float,
        result: Any,
        emit: Callable[[Any], None],
        span: Any,
    ):
        self.what, self.waiters = what, []
        self.done, self.value, self.error, self.time_s = False, None, None, 0.0
        self.kernel, self.host, self.end_s, self.result = kernel, host, end_s, result
        self.emit, self.span, self.serial = emit, span, 0

    def __await__(self) -> Generator[Handle, None, Any]:
        if not self.done and not self.kernel.run_ahead(self):
            yield self
        if self.error is not None:
            raise self.error
        return self.value

    def __call__(self) -> None:
        """End it: the action that the kernel calls at `end_s`."""
        self.emit(self.span)
        self.kernel.nothing_follows()
        self.kernel.finish(self, self.result)


class Host(Protocol):
    """The interface of a device that the kernel uses. `current` is the program that it runs right now."""

    current: Program

    def run_program(self, program: Program, handle: Handle | None) -> bool:
        """Run `program`, for which `handle` is done, until it waits again; True if it has ended."""


class SimulationKernel:
    """The event loop of virtual time, and the programs that it runs. `now_s` is the present; `programs` are
    those that have not ended, each with its host.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.programs: dict[Program, Host] = {}  # in the order of their start
        self._heap: list[tuple[float, int, int, Action]] = []
        self._serial = 0
        self._actions = 0
        self._latest: Operation | None = None  # not yet in the heap: a program may wait for it at once
        self._is_last = (
            False  # whether the present action does nothing more after the program that it resumes
        )
        self._should_stop: Callable[[], bool] = lambda: False
        self._check_time: Callable[[float], None] | None = None

    def schedule(self, time_s: float, action: Action, priority: int = NORMAL) -> None:
        """Call `action` at virtual time `time_s`; at equal times, lower priorities come first.

        Raises `ValueError` if that is in the past: the clock does not go back.
        """
        if time_s < self.now_s:
            raise ValueError(f"An action was scheduled for {time_s} s, but it is {self.now_s} s.")
        self._serial += 1
        heappush(self._heap, (time_s, priority, self._serial, action))

    def begin(self, operation: Operation) -> None:
        """Schedule the end of `operation`."""
        if operation.end_s < self.now_s:
            raise ValueError(f"An operation would end at {operation.end_s} s, but it is {self.now_s} s.")
        if self._latest is not None:
            self._queue_latest()
        self._serial += 1
        operation.serial = self._serial
        self._latest = operation

    def _queue_latest(self) -> None:
        latest = self._latest
        if latest is not None:
            self._latest = None
            end: Action = latest
            heappush(self._heap, (latest.end_s, NORMAL, latest.serial, end))

    def cancel_actions(self, keep_priority: int) -> None:
        """Cancel all scheduled actions but those of one priority."""
        self._queue_latest()
        self._heap = [entry for entry in self._heap if entry[1] == keep_priority]
        heapify(self._heap)

    def step(self) -> None:
        """Go to the time of the next action and call it. Raises `IndexError` if none is scheduled."""
        if self._latest is not None:
            self._queue_latest()
        self.now_s, _, _, action = heappop(self._heap)
        self._is_last = False
        action()

    def run(
        self,
        is_over: Callable[[], bool],
        when_idle: Callable[[], bool],
        should_stop: Callable[[], bool] = lambda: False,
        check_time: Callable[[float], None] | None = None,
    ) -> None:
        """Step until `is_over()`. `check_time` gets the time of every step and may raise.

        If no action is scheduled, `when_idle()` schedules one and returns True, or returns False to end the
        run. Raises what actions and programs raise, and `Cancelled` if `should_stop()`.
        """
        self._should_stop, self._check_time = should_stop, check_time
        self._actions = 0
        while not is_over():
            if self._latest is not None:
                self._queue_latest()
            if not self._heap and not when_idle():
                return
            if check_time is not None:
                check_time(self._heap[0][0])
            self.step()
            self._count_action()

    def _count_action(self) -> None:
        self._actions += 1
        if self._actions % ACTIONS_BETWEEN_STOP_CHECKS == 0 and self._should_stop():
            raise Cancelled("The prediction was stopped.", time_s=self.now_s)

    def run_ahead(self, operation: Operation) -> bool:
        """End an operation that a program is about to wait for, if nothing else is due before. Returns
        whether it did.

        It must be the operation that was begun last, and the present action must have nothing left to do.
        """
        if operation is not self._latest or not self._is_last or operation.waiters:
            return False
        end_s = operation.end_s
        if self._heap and self._heap[0][0] <= end_s:
            return False
        if self._check_time is not None:
            try:
                self._check_time(end_s)
            except OutOfTime:  # `run` raises it: not the program, whose device would count as its cause
                return False
        self._latest = None
        self.now_s = operation.host.current.now_s = end_s
        operation.emit(operation.span)
        operation.done, operation.value, operation.time_s = True, operation.result, end_s
        self._count_action()
        return True

    # programs

    def start(self, program: Program, host: Host) -> None:
        """Resume `program` for the first time at its own `now_s`."""
        self.programs[program] = host
        self.schedule(program.now_s, lambda: self._begin_program(program))

    def _begin_program(self, program: Program) -> None:
        self.nothing_follows()
        self.resume(program)

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
        waiters = handle.waiters
        if not waiters:
            return
        handle.waiters = []
        is_last, last = self._is_last, waiters[-1]
        for program in waiters:
            self._is_last = is_last and program is last
            self.resume(program, handle)

    def nothing_follows(self) -> None:
        """Say that the present action does nothing more after it has finished one handle: the last program
        that waits for it may run ahead.
        """
        self._is_last = True

    def close_programs(self, rank: int | None = None) -> None:
        """Close the programs of device `rank`, or all: they are never resumed."""
        for program in list(self.programs):
            if rank is None or program.rank == rank:
                program.close()
                del self.programs[program]
