"""What Bochem et al. (DATE 2025) published of one Transformer block, to compare estimates with."""

from __future__ import annotations

from typing import NamedTuple

from engine.domain.model import ModelSpec


class PublishedBlock(NamedTuple):
    """The published figures of one block: `rows` new rows attend over `seen` rows. Joules are those of all
    chips; None where nothing is stated.

    `speed_up` and `energy_ratio` compare with one chip: how many times as fast, how many times the energy.
    """

    what: str
    hidden_size: int
    intermediate_size: int
    num_heads: int
    chips: int
    rows: int
    seen: int
    block_s: float | None = None
    block_j: float | None = None
    speed_up: float | None = None
    energy_ratio: float | None = None


PUBLISHED = (
    PublishedBlock("TinyLlama, one token", 512, 2048, 8, 8, 1, 128, 0.54e-3, 0.64e-3, 26.1, 26.1 / 27.2),
    PublishedBlock("TinyLlama, prompt", 512, 2048, 8, 8, 16, 16, speed_up=9.9),
    PublishedBlock("MobileBERT", 512, 512, 4, 4, 268, 268, 38.8e-3, speed_up=4.7),
    PublishedBlock(
        "TinyLlama with 64 heads, one token", 512, 2048, 64, 64, 1, 128, speed_up=60.1, energy_ratio=1 / 1.3
    ),
)
"""Abstract and sections V-B and V-C. The energy on 8 chips against one follows from the speed-up and the
improvement of the energy-delay product, 27.2."""


def published(model: ModelSpec, chips: int, rows: int, seen: int) -> PublishedBlock | None:
    """The published figures of a block of this shape on so many chips."""
    shape = (model.hidden_size, model.intermediate_size, model.num_heads, chips, rows, seen)
    return next((one for one in PUBLISHED if one[1:7] == shape), None)
