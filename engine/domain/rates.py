"""The rates that a device reaches with models of one family, and with weights of one format."""

from __future__ import annotations

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
"""The factor within which a board's times are expected (`docs/results/boards.md`). Fitted: 72 of 78 published
rates that took no part in the fit are within it. Derived: 74 of 74 rates of decoding and 40 of 46 of prompts;
the others are of graphics cards with units for matrices, which a data sheet's fp32 leaves out. Data sheets:
with 16 bits 20 of 20 and 15 of 18, likewise. The others are estimates.
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
