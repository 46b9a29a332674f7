"""When a pipeline whose layers take turns in slots has its results: an event model in plain loops.

Tests compare the simulated world with it.
"""

from collections.abc import Mapping, Sequence

from engine.strategies.lime.cost import StepTimes
from engine.strategies.pipeline_offload.slots import Cycle, turns_of


def offload_events(
    layers: Sequence[int],
    cycles: Sequence[Sequence[Cycle]],
    load_s: Sequence[float],
    steps: Sequence[StepTimes],
    num_micro_batches: int = 1,
) -> list[float]:
    """When the last result of each step is there, s. The source has the first stage.

    As soon as a layer of a slot is computed, the next one of its turn starts to load, beside the device's
    other layers only. The first of every slot are there at 0.
    """
    turns: list[Mapping[int, int]] = [turns_of(one) for one in cycles]
    ready = [[0.0] * num for num in layers]
    free, loader, link = ([0.0] * len(layers) for _ in range(3))
    arrived, finished = [0.0] * num_micro_batches, []
    for number, step in enumerate(steps):
        ends_s = step.begin_s + (steps[number - 1].end_s if number else 0.0)
        for micro_batch in range(num_micro_batches):
            x_s = arrived[micro_batch]
            for device, num in enumerate(layers):
                at_s = max(x_s, free[device]) + (0.0 if device else ends_s)
                for position in range(num):
                    at_s = max(at_s, ready[device][position]) + step.layer_s[device]
                    if position in turns[device]:
                        loader[device] = max(at_s, loader[device]) + load_s[device]
                        ready[device][turns[device][position]] = loader[device]
                free[device] = at_s
                hop = step.leave if device == len(layers) - 1 else step.hops[device]
                link[device] = max(at_s, link[device]) + hop.transfer_s
                x_s = link[device] + hop.delay_s
            arrived[micro_batch] = x_s
        finished.append(max(arrived) + step.end_s)
    return finished
