"""The rates that a device reaches with models of one family, and with weights of one format."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

from pydantic import Field

from engine.domain.values import NonNegative, Positive, Value

Basis = Literal[
    "data sheet",
    "published measurement",
    "fitted to published rates",
    "fitted in another format",
    "derived from other boards",
    "fitted to a benchmark",
    "derived from a benchmark",
    "calibrated",
]
"""What a device's rates are: a data sheet's times an assumed efficiency, a measurement that was published,
fitted to published rates of tokens (`./loom bench boards`), derived from what was fitted so for weights of
another format or for other boards of the kind, fitted to a benchmark of the very device or derived from one
that did not measure them themselves (`edgeloom device import`), or what `loom calibrate` measured.
"""

WITHIN: dict[Basis, float] = {
    "calibrated": 1.0,
    "fitted to published rates": 1.35,
    "fitted in another format": 1.6,
    "derived from other boards": 2.0,
    "fitted to a benchmark": 1.35,
    "derived from a benchmark": 2.0,
    "published measurement": 1.6,
    "data sheet": 2.0,
}
"""The factor within which a board's times are expected, by what its rates are from. `docs/results/boards.md`
compares with published rates that took no part in a fit, and by other boards of the kind. A data sheet's
fp32 leaves out units for matrices, which graphics cards compute prompts with.
"""
IN_WORDS: dict[Basis, str] = {
    "calibrated": "measured here",
    "fitted to published rates": "from published rates of tokens",
    "fitted in another format": "from published rates of tokens in another format",
    "derived from other boards": "from boards of its kind",
    "fitted to a benchmark": "from a benchmark of this device",
    "derived from a benchmark": "from a benchmark of this device in other formats",
    "published measurement": "from benchmarks of the board",
    "data sheet": "from the data sheet",
}

FormatBits = Literal[32, 16, 8, 4]

PROCESSOR_FLOP_PER_BYTE = 15.0
"""Below so many FLOP/s per byte/s of memory a device is taken for a processor, else for a graphics processor.
Of the presets only the Jetson Nano and the A100, whose FLOP/s leave its tensor cores out, are mistaken so.
"""
PROCESSOR_FRACS: dict[FormatBits, float] = {8: 0.929, 4: 0.689}
GRAPHICS_FRACS: dict[FormatBits, float] = {8: 0.929, 4: 0.896}
"""The share of their memory rate at which boards of the kind read quantised weights, in the median of those
with published rates (`topologies/format_rates.toml`).
"""


class FamilyRate(Value):
    """The FLOP/s that a device reaches with models of one `family`: kernels and shapes differ."""

    family: str
    flop_per_s: Positive


class FormatRate(Value):
    """What products with weights of `bits` bits reach: FLOP/s of many rows, and the share of the device's
    memory rate at which they read the weights. It is small where unpacking takes longer than reading.
    `half_rows`: rows at which half of the FLOP/s are reached; None: as many as the device says.
    `source`: whose published rates these are.
    """

    bits: FormatBits
    flop_per_s: Positive
    memory_frac: float = Field(default=1.0, gt=0, le=1)
    half_rows: NonNegative | None = Field(default=None, exclude_if=lambda rows: rows is None)
    basis: Basis
    source: str = Field(default="", exclude_if=lambda source: not source)


def format_bits(weight_bits: float) -> FormatBits:
    """The format of weights that take so many bits each, their scales included: 4.5 and 4.9 are of 4 bits."""
    if weight_bits <= 6.5:
        return 4
    if weight_bits <= 12:
        return 8
    return 16 if weight_bits <= 24 else 32


@lru_cache(maxsize=1024)
def assumed_rate(
    bits: FormatBits, flop_per_s: float, memory_byte_per_s: float, half_rows: float | None
) -> FormatRate | None:
    """The rates of a device that states none for weights of `bits` bits; None: it computes with them as with
    other numbers.

    It reads quantised weights as they are stored, as fast as boards of its kind do in the median.
    `half_rows`: the device's own; None: those of its table of efficiencies.
    """
    processor = flop_per_s < PROCESSOR_FLOP_PER_BYTE * memory_byte_per_s
    frac = (PROCESSOR_FRACS if processor else GRAPHICS_FRACS).get(bits)
    if frac is None:
        return None
    kind = "processors" if processor else "graphics processors"
    return FormatRate(
        bits=bits,
        flop_per_s=flop_per_s,
        memory_frac=frac,
        half_rows=few_rows(bits, flop_per_s, memory_byte_per_s, half_rows),
        basis="derived from other boards",
        source=f"weights in {bits} bits read as stored at {frac:.0%} of the memory rate, which {kind} with "
        "published rates reach in the median",
    )


def few_rows(
    bits: FormatBits, flop_per_s: float, memory_byte_per_s: float, half_rows: float | None
) -> float | None:
    """The `half_rows` of a rate: the device's own (None), unless those would leave one row to arithmetic:
    libraries have kernels for few rows.
    """
    if half_rows is None:
        return None
    needed_flop_per_s = 2 * memory_byte_per_s * 8 / bits  # while the weights are read
    most = max(0.0, math.floor(100 * (flop_per_s / needed_flop_per_s - 1)) / 100)
    return most if most < half_rows else None
