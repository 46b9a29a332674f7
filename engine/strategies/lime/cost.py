"""Predict the time of an interleaved pipeline: LIME's cost model in closed form, and event by event. Pure.

Sun et al., "LIME: Accelerating Collaborative Lossless LLM Inference on Memory-Constrained Edge Devices"
(arXiv 2512.21835), sections IV-A and IV-B. A model is cut into segments; within a segment every device
of a ring has one stage. The first layers of a stage are streamed: all segments share their memory.

The paper's Eq. 1 adds the uncovered load time once, although every segment has one: here it counts per
segment, which is what the events say too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.ops.operation import LayerPart

STEADY_FROM, STEADY_TO = 3, 9
"""Steps between which a step's time is taken: by then nothing is left of the preloaded start."""


class StreamedBlock(NamedTuple):
    """A block that is loaded again for every segment: `part` of the layer at `position` of every stage of a
    device: its memory is shared by the segments.
    """

    position: int
    part: LayerPart


class HopTime(NamedTuple):
    """One hidden state to the next device: `transfer_s` occupies the link, `delay_s` does not."""

    transfer_s: float = 0.0
    delay_s: float = 0.0

    @property
    def total_s(self) -> float:
        return self.transfer_s + self.delay_s


class StepTimes(NamedTuple):
    """One forward pass of one micro-batch. `layer_s` and `hops` are in the order of the ring.

    `attention_s` is the part of a layer's time until its attention is added. The last hop leads back to
    the first device. `leave` takes the result to the source; `enter` is there if the source is not in the
    ring. `begin_s` and `end_s` are the source's own: embedding and head.
    """

    layer_s: tuple[float, ...]
    attention_s: tuple[float, ...]
    hops: tuple[HopTime, ...]
    leave: HopTime
    enter: HopTime | None = None
    begin_s: float = 0.0
    end_s: float = 0.0

    def front_s(self, device: int, blocks: Sequence[StreamedBlock]) -> float:
        """Seconds from the start of a stage until its last streamed block is computed."""
        if not blocks:
            return 0.0
        position, part = blocks[-1]
        whole = self.layer_s[device]
        return position * whole + (whole if part == "ffn" else self.attention_s[device])

    def around_s(self, num_segments: int) -> float:
        """Seconds of all hops of a step."""
        entered = self.enter.total_s if self.enter else 0.0
        ring_s = sum(hop.total_s for hop in self.hops)
        return num_segments * ring_s - self.hops[-1].total_s + self.leave.total_s + entered


def mean_step(first: StepTimes, other: StepTimes, number: int) -> StepTimes:
    """The mean of `number` passes: `first` and then `other`s, on the same ring."""
    share = 1 / number

    def seconds(a: float, b: float) -> float:
        return share * a + (1 - share) * b

    def hop(a: HopTime, b: HopTime) -> HopTime:
        return HopTime(seconds(a.transfer_s, b.transfer_s), seconds(a.delay_s, b.delay_s))

    return StepTimes(
        layer_s=tuple(map(seconds, first.layer_s, other.layer_s)),
        attention_s=tuple(map(seconds, first.attention_s, other.attention_s)),
        hops=tuple(map(hop, first.hops, other.hops)),
        leave=hop(first.leave, other.leave),
        enter=hop(first.enter, other.enter) if first.enter and other.enter else None,
        begin_s=seconds(first.begin_s, other.begin_s),
        end_s=seconds(first.end_s, other.end_s),
    )


def closed_form_s(
    step: StepTimes,
    layers: Sequence[int],
    num_segments: int,
    fronts_s: Sequence[float],
    loads_s: Sequence[float],
) -> float:
    """Seconds of a step with one micro-batch: computing and hops, or the slowest device's loader.

    `layers` are the devices' layers in all segments; `fronts_s` and `loads_s` are per segment: computing the
    streamed layers, and then loading those of the next segment into the same memory. Exact for equal
    stages, else a lower bound.
    """
    compute_s = sum(num * layer_s for num, layer_s in zip(layers, step.layer_s, strict=True))
    through_s = compute_s + step.around_s(num_segments) + step.begin_s + step.end_s
    loader_s = max(
        (front_s + load_s for front_s, load_s in zip(fronts_s, loads_s, strict=True) if load_s), default=0.0
    )
    return max(through_s, num_segments * loader_s)


def idle_s(step: StepTimes, layers: Sequence[int], num_segments: int, device: int, front_s: float) -> float:
    """Eq. 2, per segment: how long `device` does not need the memory of its streamed layers."""
    compute_s = sum(num * layer_s for num, layer_s in zip(layers, step.layer_s, strict=True)) / num_segments
    return compute_s - front_s + sum(hop.total_s for hop in step.hops)


def longest_idle_s(step: StepTimes, stages: Sequence[Sequence[int]], device: int, front_s: float) -> float:
    """Eq. 2 for every segment's own stages: the longest time for which `device` does not need the memory of
    its streamed layers. After the last segment the source computes the result and the next token's embedding.
    """
    longest_s = 0.0
    for number, stage in enumerate(stages):
        following = stages[(number + 1) % len(stages)]
        turns = (*stage[device:], *following[:device])
        speeds = (*step.layer_s[device:], *step.layer_s[:device])
        compute_s = sum(num * layer_s for num, layer_s in zip(turns, speeds, strict=True))
        around_s = sum(hop.total_s for hop in step.hops)
        if number + 1 == len(stages):
            around_s = step.around_s(1) + step.begin_s + step.end_s
        longest_s = max(longest_s, compute_s - front_s + around_s)
    return longest_s


def event_model(
    stages: Sequence[Sequence[int]],
    blocks: Sequence[Sequence[StreamedBlock]],
    loads_s: Sequence[float],
    steps: Sequence[StepTimes],
    num_micro_batches: int = 1,
) -> list[float]:
    """When the last result of each step is there, s. `stages` is [segment][device] → layers.

    Devices take (step, segment, micro-batch) strictly in this order. A stage starts once its streamed blocks
    are there; when the last micro-batch is through with them, those of the next segment start to
    load (`loads_s` per device), while everything else goes on. The first segment's are there at 0.
    """
    num_segments, size, last = len(stages), len(stages[0]), num_micro_batches - 1
    free, loaded = [0.0] * size, [0.0] * size
    link_free, source_free = [0.0] * size, 0.0
    arrived = [0.0] * num_micro_batches
    finished: list[float] = []
    for number, step in enumerate(steps):
        fronts_s = [step.front_s(device, blocks[device]) for device in range(size)]
        for segment, stage in enumerate(stages):
            for micro_batch in range(num_micro_batches):
                x_s = arrived[micro_batch]
                if segment == 0:
                    ends_s = step.begin_s + (steps[number - 1].end_s if number else 0.0)
                    if step.enter:
                        sent_s = max(x_s, source_free) + ends_s
                        source_free = sent_s + step.enter.transfer_s
                        x_s = source_free + step.enter.delay_s
                        ends_s = 0.0
                else:
                    ends_s = 0.0
                for device in range(size):
                    start_s = max(x_s, free[device]) + (ends_s if device == 0 else 0.0)
                    if blocks[device]:
                        start_s = max(start_s, loaded[device])
                        if micro_batch == last:
                            loaded[device] = start_s + fronts_s[device] + loads_s[device]
                    free[device] = start_s + stage[device] * step.layer_s[device]
                    leaves = device == size - 1 and segment == num_segments - 1
                    hop = step.leave if leaves else step.hops[device]
                    link_free[device] = max(free[device], link_free[device]) + hop.transfer_s
                    x_s = link_free[device] + hop.delay_s
                arrived[micro_batch] = x_s
        ended_s = source_free if step.enter else free[0]
        for x_s in arrived:
            ended_s = max(ended_s, x_s) + step.end_s
        finished.append(ended_s)
    return finished


def steady_step_s(
    stages: Sequence[Sequence[int]],
    blocks: Sequence[Sequence[StreamedBlock]],
    loads_s: Sequence[float],
    step: StepTimes,
    num_micro_batches: int = 1,
) -> float:
    """Seconds between two steps once the pipeline is warm: what every further token costs."""
    times = event_model(stages, blocks, loads_s, [step] * (STEADY_TO + 1), num_micro_batches)
    return (times[STEADY_TO] - times[STEADY_FROM]) / (STEADY_TO - STEADY_FROM)
