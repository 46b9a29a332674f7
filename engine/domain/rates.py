"""The rates that a device reaches with models of one family, and with weights of one format."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.values import Positive, Value

Basis = Literal[
    "data sheet",
    "published measurement",
    "fitted to published rates",
    "fitted in another format",
    "calibrated",
]
"""What a device's rates are: a data sheet's times an assumed efficiency, a measurement that was published,
fitted to published rates of tokens (`./loom bench boards`), derived from what was fitted so for weights of
another format, or what `loom calibrate` measured.
"""

FormatBits = Literal[32, 16, 8, 4]


class FamilyRate(Value):
    """The FLOP/s that a device reaches with models of one `family`: kernels and shapes differ."""

    family: str
    flop_per_s: Positive


class FormatRate(Value):
    """What products with weights of `bits` bits reach: FLOP/s of many rows, and the share of the device's
    memory rate at which they read the weights. It is small where unpacking takes longer than reading.
    """

    bits: FormatBits
    flop_per_s: Positive
    memory_frac: float = Field(default=1.0, gt=0, le=1)
    basis: Basis


def format_bits(weight_bits: float) -> FormatBits:
    """The format of weights that take so many bits each, their scales included: 4.5 and 4.9 are of 4 bits."""
    if weight_bits <= 6.5:
        return 4
    if weight_bits <= 12:
        return 8
    return 16 if weight_bits <= 24 else 32
