"""Chooses the dilation D of a run: the smallest number of wall seconds per virtual second with which this
machine keeps up.

An emulated operation is real work that must end before its virtual time is over, on cores shared by all
devices. The predicted trace says when every device computes and for how long; the host's profile says how
long this machine needs. D is the smallest number that leaves headroom everywhere:

operation   host time ≤ 70 % of target · D, for operations long enough to matter on their own
device      the same for the sum of all operations of a device (short ones make up for each other)
message     what the runtime spends on a message ≤ the message's time · D, on average
cores       work of all devices that compute at the same time ≤ 65 % of the cores
start       the first token takes so long that what a busy machine is late is a small part of it; for its sake
            the whole run takes no longer than some seconds, or D is no more than 4
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile, MeasuredRow
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.ops.cost import hands_over, measured_s
from engine.ops.kernels import Kernel
from engine.ops.sizes import STORED_BITS

OP_HEADROOM = 0.7
CORES_SHARE = 0.65
STEP = 0.25
LEAST_RAISE = 1.25
ALONE_S = 1e-3
"""Host seconds from which an operation must fit by itself; shorter ones may use the next one's spare time."""

INLINE_HOST_S, OP_HOST_S, MESSAGE_HOST_S, MESSAGE_HOST_S_PER_BYTE = 100e-6, 300e-6, 250e-6, 15e-9
"""What the runtime itself spends per operation, and per message and side: cautious estimates."""

CROWDED = 1.2
"""The factor by which operations take longer when devices share cores and caches (`bench load`)."""

LAYER_PRODUCTS, LAYER_PASSES = 7, 6
"""Kernels of a layer with a gated feed-forward part: products with weights; norms, positions, activation,
sums.
"""

START_WALL_S = 0.2
"""Wall seconds that a first token takes at least: of ±10 % of it, the first operations of a run are late 2 to
7 ms because caches are cold, and up to 16 beside other work.
"""

SHORT_WALL_S, MOST_FOR_START = 1.0, 4.0
"""Wall seconds up to which a run may be stretched for that: its set-up takes longer. A longer one gets no
more than so much dilation. A rehearsal warms the caches, and raises the dilation where that is not enough:
beside a load of 7 to 16 on two cores, 21 of 21 runs were valid with one second, as with two.
"""

FLOAT_BYTES = 4

COLDEST = 4.0
"""The largest factor by which cold caches make the runtime slower."""

CAUTIOUS = HostProfile(
    host="an unknown machine",
    products=(
        MeasuredRow(rows=1, s_per_flop=2e-10),
        MeasuredRow(rows=8, s_per_flop=6e-11),
        MeasuredRow(rows=32, s_per_flop=3e-11),
        MeasuredRow(rows=256, s_per_flop=2e-11),
    ),
    elementwise_s_per_element=1e-9,
    op_overhead_s=1e-5,
    memory_byte_per_s=6e9,
)
"""The profile of a host of which nothing is known: half the speed of a slow core."""


class _Use(NamedTuple):
    """One activity: virtual start and end, and the seconds of one core that it really takes."""

    start_s: float
    end_s: float
    host_s: float


def choose_dilation(
    spec: RunSpec, trace: Sequence[Span | Mark], cores: int | None = None, host: HostProfile = CAUTIOUS
) -> float:
    """D for `spec`, predicted to run as `trace`: its own number, 1 for a run that is not paced, else the
    smallest that fits.

    `cores` is the number this process may use, unless given; `host` has the times of this machine, unless
    the run has them.
    """
    if not spec.is_paced:
        return 1.0
    if not isinstance(spec.dilation, str):
        return spec.dilation
    return step_up(max(1.0, *demands(spec, spec.profile or host, trace, cores).values()))


def demands(
    spec: RunSpec, profile: HostProfile, trace: Sequence[Span | Mark], cores: int | None = None
) -> dict[str, float]:
    """The dilation that each rule above asks for, by its name, where the host has the times of `profile` and
    `spec` runs as `trace`.
    """
    spans = [item for item in trace if isinstance(item, Span)]
    devices = len({span.device for span in spans if span.kind == "compute"})
    weights = {device.name: _weights(spec, device) for device in spec.cluster.devices}
    computing = defaultdict(list)
    for span in spans:
        if span.kind == "compute":
            needed_s = host_s(span, profile, devices, weights[span.device])
            computing[span.device].append(_Use(span.start_s, span.end_s, needed_s))
    message_s = MESSAGE_HOST_S * coldness(devices)
    messages = [
        _Use(span.start_s, span.end_s, message_s + MESSAGE_HOST_S_PER_BYTE * span.bytes)
        for span in spans
        if span.kind == "recv"
    ]
    everything = [use for uses in computing.values() for use in uses] + messages
    alone = (_ratio(use) for use in everything if use.host_s >= ALONE_S)
    by_device = (_ratio(_sum(uses)) for uses in computing.values())
    available = cores or len(os.sched_getaffinity(0))
    return {
        "operation": max(alone, default=0.0) / OP_HEADROOM,
        "device": max(by_device, default=0.0) / OP_HEADROOM,
        "message": _ratio(_sum(messages)) if messages else 0.0,
        "cores": _peak_load(everything) / (CORES_SHARE * available),
        "start": _needed_at_start(trace),
    }


def _needed_at_start(trace: Sequence[Span | Mark]) -> float:
    """The dilation that makes the late start of a run a small part of its first token's time."""
    times_s = defaultdict(list)
    for item in trace:
        if isinstance(item, Mark):
            times_s[item.name].append(item.time_s)
    answers_s = times_s["token_emitted"] or times_s["request_finished"]
    if not answers_s or not times_s["request_arrived"]:
        return 1.0
    first_token_s = min(answers_s) - min(times_s["request_arrived"])
    most = max(MOST_FOR_START, SHORT_WALL_S / max(end_s(trace), 1e-9))
    return min(most, START_WALL_S / max(first_token_s, 1e-9))


def end_s(trace: Sequence[Span | Mark]) -> float:
    """Virtual seconds until the last of `trace`."""
    return max((item.end_s if isinstance(item, Span) else item.time_s for item in trace), default=0.0)


def enough_dilation(dilation: float, used_frac: float) -> float:
    """A dilation at which operations that used so much of their time have room: a quarter more at least."""
    return step_up(dilation * max(used_frac / OP_HEADROOM, LEAST_RAISE))


def enough_dilation_for_latency(dilation: float, error: float, limit: float) -> float:
    """A dilation at which a run would be at most `limit` longer than predicted, if it was `error` longer at
    `dilation` because this host took so many wall seconds more, which do not grow with the dilation.
    """
    return step_up(dilation * max(error / limit, LEAST_RAISE))


def step_up(dilation: float) -> float:
    """The next quarter, which a person can read."""
    return math.ceil(dilation / STEP - 1e-6) * STEP


class Weights(NamedTuple):
    """The weights that a device computes with: the bits of each where it is quantised (0: it is not), and the
    bytes of each that the device's spans count.
    """

    bits: float
    counted_bytes: float


AS_OTHERS = Weights(0.0, FLOAT_BYTES)
"""Weights that are numbers like all others."""


def _weights(spec: RunSpec, device: DeviceSpec) -> Weights:
    """Models of two bounds count quantised weights as they are stored, the others restored."""
    bits = STORED_BITS.get(spec.model.weight_bits, spec.model.weight_bits)
    as_stored = bits and (spec.compute_model or device.compute_model) in ("roofline", "serial")
    return Weights(bits, bits / 8 if as_stored else FLOAT_BYTES)


def host_s(span: Span, profile: HostProfile, devices: int = 1, weights: Weights = AS_OTHERS) -> float:
    """Core seconds that this host needs for a compute span, when so many devices compute in turn.

    A span has no shapes, but FLOPs per byte say how many rows its products have (2·r·i·c FLOPs over
    at least b·i·c bytes, b for each weight); the estimate errs to fewer rows, so to slower.
    """
    rows = max(1, round(span.flops * weights.counted_bytes / 2 / max(1, span.bytes)))
    side = max(1, math.isqrt(span.flops // (2 * rows)))  # as if it were one square matrix
    matrix = Kernel("product", rows, side, side, 1, FLOAT_BYTES, weight_bits=weights.bits)
    from_table_s = measured_s(profile, matrix)
    work_s = CROWDED * max(from_table_s, span.bytes / profile.memory_byte_per_s)
    return work_s + _calls_s(profile, span.flops, side) + runtime_s(span.flops, devices)


def _calls_s(profile: HostProfile, flops: int, side: int) -> float:
    """What the calls of a whole layer cost, for an operation that may be one; nothing for a short one."""
    if not hands_over(flops, paced=True):
        return 0.0
    calls = profile.calls_at(side)
    in_layer_s = LAYER_PRODUCTS * calls.product_s + LAYER_PASSES * calls.pass_s
    return CROWDED * (calls.operation_s + calls.attention_s + in_layer_s)


def runtime_s(flops: int, devices: int = 1) -> float:
    """What the runtime itself spends on an operation."""
    return coldness(devices) * (OP_HOST_S if hands_over(flops, paced=True) else INLINE_HOST_S)


def coldness(devices: int) -> float:
    """How much more the runtime spends with so many devices: each finds its caches colder.

    By `bench load`: 0.3, 0.4, 0.6, 0.9 ms for an operation with 2, 4, 8, 16 devices.
    """
    return min(COLDEST, max(1.0, (devices + 5) / 7))


def _ratio(use: _Use) -> float:
    """Host seconds per virtual second; 0 for an activity without duration."""
    duration_s = use.end_s - use.start_s
    return use.host_s / duration_s if duration_s > 0 else 0.0


def _sum(uses: Sequence[_Use]) -> _Use:
    """All one after the other."""
    return _Use(0.0, sum(use.end_s - use.start_s for use in uses), sum(use.host_s for use in uses))


def _peak_load(uses: Sequence[_Use]) -> float:
    """Cores in use at D = 1 while most run at once: 95 % of the busy time is at or below it."""
    edges = []
    for use in uses:
        load = _ratio(use)
        edges += [(use.start_s, load), (use.end_s, -load)]
    edges.sort()
    levels, load, before_s = [], 0.0, 0.0
    for time_s, change in edges:
        if load > 1e-9 and time_s > before_s:
            levels.append((load, time_s - before_s))
        load += change
        before_s = time_s
    levels.sort()
    left_s = 0.95 * sum(duration_s for _, duration_s in levels)
    for level, duration_s in levels:
        left_s -= duration_s
        if left_s <= 0:
            return level
    return 0.0
