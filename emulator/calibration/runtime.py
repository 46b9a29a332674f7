"""Measures what the runtime costs beside the operations themselves: on whole native runs.

Device processes serve requests as in any run (`engine/runs/supervisor.py`). The trace has the seconds of
every operation's work and of every message; what lies between them is the runtime's:

dispatch_s   from the end of one operation to the start of the next of the same token, in the mean
turn_frac    how much that grows with the time of the operations: a device that computes looks for messages
handover_s   how much longer it is for operations that the compute thread does
token_s      how much longer it is from one token to the next
send_s, receive_s, byte_s   a message from the call of `send` to its use, by its size
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from emulator.calibration.shapes import config
from emulator.calibration.stopwatch import trimmed_mean
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.errors import HostError
from engine.domain.granted import granted_frac
from engine.domain.host_times import RuntimeCosts
from engine.domain.network import LoopbackNetwork, Network
from engine.domain.spec import RunSpec
from engine.domain.token_bucket import burst_payload_bytes
from engine.domain.trace import Mark, Span
from engine.domain.units import transfer_s
from engine.domain.workload import Workload
from engine.models.families.hf_config import spec_of_config
from engine.ops.cost import hands_over
from engine.runs.failover import first_tokens, pairs_of
from engine.runs.predict import Prepared, prepare
from engine.runs.supervisor import Callbacks, Supervisor
from engine.strategies.registry import by_rule
from engine.worlds.real.device_process import Assignment

TALKING = ("llama", 448, 8)
"""The made-up model of runs that tell what messages cost."""

NEW_TOKENS = 24
SHORT_S = 1e-4
"""An error of a message counts relative to its time plus this."""


class Run(NamedTuple):
    """A native run: what was run, and its trace."""

    prepared: Prepared
    trace: Sequence[Span | Mark]


class Sent(NamedTuple):
    """One message: its bytes with the header, and the seconds from the call of `send` to its use."""

    size_bytes: int
    seconds: float


def run_native(spec: RunSpec, network: Network | None = None, drawn: Path | None = None) -> Run:
    """Serve the requests of `spec` over `network` (None: loopback), not verified. Runs of one model may share
    the directory `drawn`, so that its weights are drawn once. Raises `HostError`.
    """
    prepared = prepare(spec)
    pairs = pairs_of(spec, prepared.plan, first_tokens(spec, prepared.plan, prepared.requests))
    network = network or LoopbackNetwork(spec.cluster)
    with nullcontext(drawn) if drawn else tempfile.TemporaryDirectory() as results:
        given = Assignment(spec, prepared.plan, prepared.requests, network, False, Path(results))
        calls = Callbacks(lambda event: None, lambda mark: mark, lambda: None, lambda: False, lambda: None)
        result = Supervisor(given, network, 1.0, pairs, calls).run()
    if result.outcome.kind != "finished":
        raise HostError(
            f"Calibrating this machine failed: a run over loopback ended: {result.outcome.sentence}"
        )
    return Run(prepared, result.trace)


def spec_of(
    model: tuple[str, int, int],
    devices: int,
    strategy: str,
    rows: int,
    bit_per_s: float = 1e12,
    requests: int = 2,
    new_tokens: int = NEW_TOKENS,
) -> RunSpec:
    """Requests to a made-up model on so many devices of this host."""
    family, hidden, layers = model
    name = f"{family}-{hidden}"
    cluster = ClusterSpec(
        name="host",
        source="d0",
        devices=tuple(
            DeviceSpec(name=f"d{rank}", flop_per_s=1e11, memory_bytes=4e9, memory_byte_per_s=1e10)
            for rank in range(devices)
        ),
        links=tuple(LinkSpec(a="d0", b=f"d{rank}", bit_per_s=bit_per_s) for rank in range(1, devices)),
    )
    return RunSpec(
        cluster=cluster,
        model=spec_of_config(name, config(family, hidden, layers), name),
        workload=Workload(prompt_tokens=rows, new_tokens=new_tokens, requests=requests),
        strategy=strategy,
        params=by_rule(strategy),  # every device takes part
        dilation="native",
    )


def computing_costs(runs: Sequence[Run]) -> RuntimeCosts:
    """The costs of computing: dispatch_s and turn_frac by least squares over the runs, and the mean of
    hand-over and tokens.
    """
    inline = [_split(run) for run in runs]
    means = [(trimmed_mean(item.operations), trimmed_mean(item.gaps)) for item in inline]
    slope = max(0.0, _slope(means))
    dispatch_s = max(0.0, statistics.fmean(gap_s - slope * op_s for op_s, gap_s in means))
    handed = [gap_s - slope * op_s - dispatch_s for item in inline for op_s, gap_s in item.handed_over]
    tokens = [trimmed_mean(item.between_tokens) - dispatch_s for item in inline]
    return RuntimeCosts(
        dispatch_s=dispatch_s,
        turn_frac=slope,
        handover_s=max(0.0, trimmed_mean(handed)),
        token_s=max(0.0, statistics.fmean(tokens)),
    )


class _Split(NamedTuple):
    """Seconds of one run's operations in the main thread and of the gaps before them; (seconds, gap) of those
    that were handed over; the gaps from one token's last operation to the next token's first.
    """

    operations: list[float]
    gaps: list[float]
    handed_over: list[tuple[float, float]]
    between_tokens: list[float]


def _split(run: Run) -> _Split:
    spans = sorted(
        (item for item in run.trace if isinstance(item, Span) and item.kind == "compute"),
        key=lambda span: (span.device, span.end_s),
    )
    found = _Split([], [], [], [])
    for before, after in pairwise(spans):
        gap_s, took_s = max(0.0, after.start_s - before.end_s), after.end_s - after.start_s
        if (before.device, before.request) != (after.device, after.request):
            continue
        if before.token != after.token:
            found.between_tokens.append(gap_s)
        elif hands_over(after.flops, paced=False):
            found.handed_over.append((took_s, gap_s))
        else:
            found.operations.append(took_s)
            found.gaps.append(gap_s)
    return found


def messages(run: Run, link_bit_per_s: float = math.inf) -> list[Sent]:
    """The messages of a run, without the time that their bytes take on a link, all but those that its full
    bucket lets through at once.
    """
    at_once = math.inf if math.isinf(link_bit_per_s) else burst_payload_bytes(link_bit_per_s)
    return [
        Sent(
            item.bytes,
            item.end_s - item.start_s - transfer_s(max(0.0, item.bytes - at_once), link_bit_per_s),
        )
        for item in run.trace
        if isinstance(item, Span) and item.kind == "recv"
    ]


def resumes(run: Run) -> list[float]:
    """Seconds from the use of a message to the start of the operation that it lets an idle device begin."""
    found = []
    spans = [item for item in run.trace if isinstance(item, Span) and item.kind in ("recv", "compute")]
    spans.sort(key=lambda span: (span.device, span.end_s if span.kind == "recv" else span.start_s))
    idle_s: dict[str, float] = {}
    for before, after in pairwise(spans):
        if before.kind == "compute":
            idle_s[before.device] = before.end_s
            continue
        is_idle = before.end_s >= idle_s.get(before.device, 0.0)
        if is_idle and (before.device, "compute") == (after.device, after.kind):
            found.append(after.start_s - before.end_s)
    return found


def shares_a_core() -> bool:
    """Whether two processes of this machine cannot have a core each."""
    return len(os.sched_getaffinity(0)) < 2 or granted_frac() < 1.0


def quicker_half_s(seconds: Iterable[float]) -> float:
    """The median of the quicker half. Where both ends of messages share a core, every second message arrives
    while the other end computes and waits for the core. Over a link nobody does: the other half says what a
    message takes (measured: 64 µs here on one core as on two, where the mean of all on one core is 196 µs).
    """
    ordered = sorted(seconds)
    return statistics.median(ordered[: (len(ordered) + 1) // 2])


def message_costs(
    sent: Sequence[Sent], typical: Callable[[Iterable[float]], float] = trimmed_mean
) -> tuple[float, float]:
    """What a message costs: (fixed seconds, seconds per byte), both ends together, from the `typical` seconds
    by size.

    The seconds per byte are the slope of a line, errors relative to the time, and none if it falls: a link
    lets the first frames of a message through at once. The fixed seconds are those of the smallest message.
    """
    sizes = sorted({item.size_bytes for item in sent})
    means = [typical(item.seconds for item in sent if item.size_bytes == size) for size in sizes]
    weights = [1 / (abs(seconds) + SHORT_S) ** 2 for seconds in means]
    total = sum(weights)
    mean_size = sum(w * size for w, size in zip(weights, sizes, strict=True)) / total
    mean_s = sum(w * seconds for w, seconds in zip(weights, means, strict=True)) / total
    spread = sum(w * (size - mean_size) ** 2 for w, size in zip(weights, sizes, strict=True))
    together = sum(
        w * (size - mean_size) * (seconds - mean_s)
        for w, size, seconds in zip(weights, sizes, means, strict=True)
    )
    byte_s = max(0.0, together / spread) if spread else 0.0
    return max(0.0, means[0] - byte_s * sizes[0]), byte_s


def over_loopback(costs: RuntimeCosts, prompt_rows: Sequence[int]) -> RuntimeCosts:
    """`costs` with those of messages, from runs of two devices over loopback. Raises `HostError`."""
    with tempfile.TemporaryDirectory() as drawn:
        runs = [run_native(spec, drawn=Path(drawn)) for spec in talking(prompt_rows)]
    sent = [item for run in runs for item in messages(run)]
    return with_messages(costs, sent, [resumes(run) for run in runs], shares_a_core())


def talking(rows: Sequence[int], bit_per_s: float = 1e12) -> list[RunSpec]:
    """Runs of two devices with few messages (a pipeline), and with many at once (tensor parallelism)."""
    pipelines = [spec_of(TALKING, 2, "gpipe", count, bit_per_s) for count in rows]
    return [*pipelines, spec_of(TALKING, 2, "megatron", rows[-1], bit_per_s)]


def with_messages(
    costs: RuntimeCosts, sent: Sequence[Sent], resumed: Sequence[Sequence[float]], shared: bool = False
) -> RuntimeCosts:
    """The costs with those of messages, which are counted at its two ends alike: the trace does not say which
    end took them. What resuming a program takes beyond its dispatch (`resumed`, by run) is the receiver's.

    shared: both ends shared a core. Then in pipelines a program resumes where the other has just computed,
    which it does on no core of its own: of all resumes, too, the quicker half counts.
    """
    fixed_s, byte_s = message_costs(sent, quicker_half_s if shared else trimmed_mean)
    if shared:
        means = [quicker_half_s(gap_s for gaps in resumed for gap_s in gaps)] if any(resumed) else []
    else:
        means = [trimmed_mean(gaps) for gaps in resumed if gaps]
    resume_s = max(0.0, statistics.fmean(means) - costs.dispatch_s) if means else 0.0
    return costs.model_copy(
        update={"send_s": fixed_s / 2, "receive_s": fixed_s / 2 + resume_s, "byte_s": byte_s / 2}
    )


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the least-squares line; 0 if all points have one x."""
    mean_x, mean_y = (statistics.fmean(values) for values in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
