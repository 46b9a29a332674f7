"""The simulated world: runs the same programs as the real one in virtual time, on shapes instead of numbers.

It puts together the kernel (`kernel.py`), the devices, the network and the faults of the scenario, and runs
one program per device to its end. If programs wait for what can never happen, it raises `Deadlock`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.domain.errors import PeerFailed, RunError
from engine.domain.host_times import RuntimeCosts
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.worlds.common.deadlock import deadlock
from engine.worlds.common.device import OnShapes, Prices
from engine.worlds.common.programs import Program
from engine.worlds.common.token_limit import TokenLimit
from engine.worlds.simulated.buckets import TokenBuckets
from engine.worlds.simulated.cores import SharedCores, Threads
from engine.worlds.simulated.device import Decisions, SimulatedDevice
from engine.worlds.simulated.faults import DeviceJoined, FaultInjector
from engine.worlds.simulated.kernel import FAULT, SimulationKernel
from engine.worlds.simulated.message import SimulatedMessage
from engine.worlds.simulated.network import SimulatedNetwork
from engine.worlds.simulated.work_done import WorkDone

Programs = Iterable[tuple[int, Any]]
"""The programs of a run, as (rank, coroutine)."""
KnownPrices = dict[int, tuple[dict[OnShapes, Prices], dict[OnShapes, Prices]]]
"""What operations cost, by the first rank of each kind of device: of all that are alike, and of each."""
Recover = Callable[[Exception], Programs]
"""Gets a `PeerFailed` or `DeviceJoined`; returns the programs that continue the run, or raises the error."""


class SimulatedWorld:
    """Runs programs in virtual time and gives their spans and marks to `emit`, in the order they happen.

    `decisions` are those of a real run of the same spec. A recovery may replace `plan`.

    batched: consecutive layers of a device are one operation of the kernel, and their spans come when the
    last one ends. For runs that nothing disturbs: without changes, and only if no operation fails.
    host: all devices are processes of one host and share its cores.
    shaped: links are token buckets, as emulated ones are, and messages are used as they arrive; with a host,
    they always are.
    traced: False makes no spans and no marks of memory, for who asks only when tokens come.
    """

    def __init__(
        self,
        spec: RunSpec,
        plan: Plan,
        emit: Callable[[Span | Mark], None],
        decisions: Decisions | None = None,
        batched: bool = False,
        host: RuntimeCosts | None = None,
        traced: bool = True,
        shaped: bool = False,
    ):
        self.spec = spec
        self.plan = plan
        self._record = emit
        self.traced = traced
        self.token_limit = TokenLimit(spec.workload.token_limit_s)
        limited = spec.workload.token_limit_s is not None
        self.emit = self._emit_limited if limited else emit
        self._check_time = self.token_limit.check if limited else None
        self.decisions = decisions or {}
        self.kernel = SimulationKernel()
        self.network = SimulatedNetwork(
            spec.cluster, self.kernel, self._on_departed, self._on_arrived, spec.seed
        )
        self.devices = [self._device(rank) for rank in range(len(spec.cluster.devices))]
        self.cores = None if host is None else SharedCores(self.kernel, host.slowdown_of, host.link_byte_s)
        if shaped or host is not None:
            self.network.buckets = TokenBuckets(self.network.shared)
        if host is not None:
            self.network.waiting_frac = 1.0 - host.message_work_frac
        for device in self.devices:
            device.batched, device.traced = batched, traced
            if self.cores is not None and host is not None:
                workers = spec.cluster.workers
                core = host.core_of(device.rank, workers)
                device.threads = Threads(self.cores, core, host.wakeup_of(len(workers)))
        self.faults = FaultInjector(spec, plan, self.kernel, self.network, self.devices, self.emit)

    def _device(self, rank: int) -> SimulatedDevice:
        return SimulatedDevice(
            rank, self.spec, self.plan, self.emit, self.kernel, self.network, self.decisions
        )

    def share_prices(self, known: KnownPrices) -> None:
        """Use the prices in `known`, and add to them. Other worlds may have filled it, of a run with the same
        model, cluster and compute model.
        """
        for device in self.devices:
            first = self.spec.cluster.first_alike[device.rank]
            device.use_prices(*known.setdefault(first, ({}, {})))

    def watch_work(self, tokens: Mapping[int, int]) -> None:
        """From now on a program that leaves a part of a layer out ends in `WrongProgram`. `tokens` are those
        of requests that get another number than the workload says.
        """
        work_done = WorkDone(self.spec.model, self.spec.workload.new_tokens, tokens, self.devices)
        for device in self.devices:
            device.work_done = work_done

    def _emit_limited(self, item: Span | Mark) -> None:
        """Record `item`. Raises `OutOfTime` if it is a token that came too late."""
        self._record(item)
        self.token_limit.record(item)

    @property
    def now_s(self) -> float:
        return self.kernel.now_s

    def layer_s(self, token: int, layer: int, layers: int) -> float:
        """Seconds of a layer in a run without a trace, in the pass of this token: the mean of so many up to
        `layer`, on the device that ends it last. Others may still make up for a late start.
        """
        ends = (device.layer_end_s for device in self.devices if (token, layer) in device.layer_end_s)
        last = max(ends, key=lambda end_s: end_s[token, layer])
        return (last[token, layer] - last[token, layer - layers]) / layers

    def run(
        self,
        programs: Programs,
        should_stop: Callable[[], bool] = lambda: False,
        recover: Recover | None = None,
    ) -> None:
        """Run `programs` to their end. Raises the first `RunError`, `Deadlock` or `Cancelled`.

        With `recover`, a failed device that no program caught, and a device that joins, do not end the run:
        all programs are halted and those that `recover` returns take their place.
        """
        self.faults.schedule_scenario(interrupt_on_join=recover is not None)
        self._start(programs)
        with no_search_for_cycles():
            try:
                self._run(should_stop, recover)
            finally:
                self.kernel.close_programs()
                for device in self.devices:
                    self.emit(device.memory_mark(self.now_s))

    def _run(self, should_stop: Callable[[], bool], recover: Recover | None) -> None:
        """A program that waits, under a new plan, for a device that is not in it would do so for ever."""
        planned_without: set[int] = set()
        while True:
            try:
                self.kernel.run(self._is_over, self._when_idle, should_stop, self._check_time)
                return
            except (PeerFailed, DeviceJoined) as event:
                failed = self.faults.detected
                if recover is None or (isinstance(event, PeerFailed) and failed == planned_without):
                    raise
                planned_without = failed
                self._halt()
                self.faults.tell_all()
                self._start(recover(event))

    def _start(self, programs: Programs) -> None:
        for rank, coroutine in programs:
            if rank in self.faults.failed:
                coroutine.close()
            else:
                self.devices[rank].start(Program(rank, coroutine, self.now_s))
        self.faults.watch_frozen_devices(self.plan)

    def _halt(self) -> None:
        """Close all programs and drop all messages; link conditions, weights and failed devices stay."""
        self.kernel.close_programs()
        self.kernel.cancel_actions(keep_priority=FAULT)
        self.network.clear()
        if self.cores is not None:
            self.cores.clear()
        for device in self.devices:
            device.halt()

    def _is_over(self) -> bool:
        return not self.kernel.programs and self.spec.cluster.source_rank not in self.faults.failed

    def _when_idle(self) -> bool:
        """Schedule the detection of what keeps programs waiting, as they all wait and nothing is scheduled.

        Returns False if only frozen devices have programs left, because no other device waits for them.
        Raises `Deadlock` if no fault explains the wait.
        """
        if self.network.stalled():
            self.faults.schedule_reachability_check()
        elif all(self.faults.is_frozen(program.rank) for program in self.kernel.programs):
            return False
        elif not self.faults.schedule_detection_of_frozen_devices():
            raise self._deadlock()
        return True

    def _deadlock(self) -> RunError:
        waits = (
            f"{self.devices[program.rank].device.name} for "
            f"{program.waiting_for.name() if program.waiting_for else 'nothing'}"
            for program in self.kernel.programs
        )
        return deadlock(waits, self.now_s)

    # messages

    def _on_departed(self, message: SimulatedMessage) -> None:
        if self.traced:
            self.devices[message.src].emit(message.span("send", self.spec.cluster, self.now_s))
        self.kernel.finish(message.handle, None)

    def _on_arrived(self, message: SimulatedMessage) -> None:
        device = self.devices[message.dst]
        if message.dst in self.faults.failed or message.src in device.failed:
            return

        def use() -> None:
            if self.traced:
                device.emit(message.span("recv", self.spec.cluster, self.now_s))
            content = message.note, message.tensor
            device.deliver(message.src, message.tag, message.sequence, content, self.now_s)

        device.receive(message, use)


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Run the block without Python's search for unused reference cycles, which it makes whenever there are
    many new objects. A trace grows by hundreds of thousands that are all in use, and walking through them
    again and again takes a third of a run's time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
