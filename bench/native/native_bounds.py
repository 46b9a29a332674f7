"""The least time that a prompt and a decode step can take at native speed, for `bench native`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple, get_args

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.domain.units import BITS_PER_BYTE
from engine.ops.sizes import weight_bytes
from engine.program.collectives import AllReduce
from engine.strategies.shared.all_reduce_time import all_reduce_s
from engine.strategies.shared.ends import layer_slices

PROMPT, NEW_TOKENS = 128, 32


class Place(NamedTuple):
    """A column of the table: so many devices on links of this rate; 0: one device."""

    devices: int
    bit_per_s: float

    @property
    def title(self) -> str:
        return "1 device" if self.devices == 1 else f"N={self.devices}, {self.bit_per_s / 1e6:g} Mbit/s"


class Speed(NamedTuple):
    """Seconds of the first token and of each later one."""

    first_s: float
    token_s: float


def bounds_at(
    place: Place, model: ModelSpec, memory_byte_per_s: float, prompt_s: float, cores: int | None = None
) -> Iterator[tuple[str, Speed]]:
    """The bounds of every method at `place`: `prompt_s` is one device's time for the prompt.

    A decode step reads all weights but the table once, at `memory_byte_per_s` per core; tensor parallelism
    divides them. Its sums are two per layer, each by the algorithm whose bytes take the least time. A
    pipeline sends the rows from stage to stage and the last row back. `cores` are this host's unless given.
    """
    weights_s = step_bytes(model) / memory_byte_per_s
    if place.devices == 1:
        yield "bound, one device", Speed(prompt_s, weights_s)
        return
    sharing = min(place.devices, cores or len(os.sched_getaffinity(0)))
    row_bytes = model.hidden_size * model.element_bytes

    def sums_s(rows: int) -> float:
        each_s = min(
            all_reduce_s(how, place.devices, rows * row_bytes, place.bit_per_s, 0.0)
            for how in get_args(AllReduce)
        )
        return 2 * model.num_layers * each_s

    row_s = row_bytes * BITS_PER_BYTE / place.bit_per_s
    yield (
        "bound, tensor parallel",
        Speed(prompt_s / sharing + sums_s(PROMPT), weights_s / sharing + sums_s(1)),
    )
    hops = place.devices - 1
    yield (
        "bound, pipeline",
        Speed(prompt_s + (hops * PROMPT + 1) * row_s, weights_s + (hops + 1) * row_s),
    )


def step_bytes(model: ModelSpec) -> int:
    """Bytes of the weights that a decode step reads: those of all layers and of the head."""
    layers = (piece for layer in range(model.num_layers) for piece in layer_slices(layer))
    return sum(weight_bytes(model, piece) for piece in (*layers, Slice(layer=-1, part="lm_head")))
