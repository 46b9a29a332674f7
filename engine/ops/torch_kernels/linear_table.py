"""The table of kernels that compute products with weights fastest on one host, by rows and size of the
matrix.

A product belongs to the class of rows and to the class of sizes that its numbers fall in. The probe
(`linear_probe.py`) times one product of each class.
"""

from __future__ import annotations

import platform
from bisect import bisect_right
from math import inf
from pathlib import Path
from statistics import geometric_mean
from typing import Literal

from pydantic import Field

from engine.domain.values import Positive, Value

LinearKernel = Literal["default", "vector", "onednn", "row"]
"""default: torch's `linear` (MKL, or its like). vector: `mv`, for one row. onednn: oneDNN's product.
row: ours, for one row (`row_products.c`).
"""

ROWS = (1, 3, 8, 32, 128)
"""The rows that the probe times; a class ends halfway (in logarithms) to the next."""
ROW_BOUNDS = (2, 5, 17, 65)

SIDES = (256, 512, 1024, 2048)
"""The sides of the square matrices that the probe times."""
SIZE_BOUNDS = tuple(low * high * 2 for low, high in zip(SIDES[:-1], SIDES[:-1], strict=True))

TIE = 1.1
"""Times that differ by less than this factor are equal."""

SMALLEST_ELEMENTS = SIDES[0] ** 2 // 2
"""Matrices with fewer elements use the default: there the call itself takes most of the time."""


def row_class(rows: int) -> int:
    return bisect_right(ROW_BOUNDS, rows)


def size_class(elements: int) -> int:
    return bisect_right(SIZE_BOUNDS, elements)


class LinearChoice(Value):
    """The fastest kernel for one class, with the seconds that every kernel took for the class's product."""

    dtype: Literal["float32", "bfloat16"]
    rows: int = Field(gt=0)
    side: int = Field(gt=0)
    kernel: LinearKernel
    seconds: dict[LinearKernel, Positive]


class LinearTable(Value):
    """The choices for one processor, one version of torch and one library of ours (`row_library.py`, or ""):
    one for every dtype and class.
    """

    processor: str
    torch: str
    row_library: str
    packed_rows: int = Field(
        default=0, ge=0, description="Up to so many rows, ours reads matrices in 8 and 4 bits as they are."
    )
    four_rows_from: int | None = Field(
        default=None, gt=0, description="Ours reads rows of so many numbers or more four in turn; None: none."
    )
    choices: tuple[LinearChoice, ...]

    @property
    def whole_parts(self) -> bool:
        """Whether one row goes through parts of a layer in calls of ours: where other kernels are not faster
        than ours by more than a tie, in the mean of all sizes, they save what lies between products.
        """
        rows = [one.seconds for one in self.choices if (one.dtype, one.rows) == ("float32", 1)]
        times = [one.get("row", inf) / min(one.values(), default=1.0) for one in rows]
        return bool(self.row_library) and (not times or geometric_mean(times) <= TIE)

    def grid(self) -> dict[str, tuple[tuple[LinearKernel, ...], ...]]:
        """Dtype → kernels by row class, then by size class."""
        by_place = {(one.dtype, one.rows, one.side): one.kernel for one in self.choices}
        dtypes = dict.fromkeys(one.dtype for one in self.choices)
        return {
            dtype: tuple(tuple(by_place[dtype, rows, side] for side in SIDES) for rows in ROWS)
            for dtype in dtypes
        }


VECTORS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16", "sve")
"""Names in /proc/cpuinfo of the instructions that decide which kernels a processor has."""


def processor() -> str:
    """The model name of this host's processor, and which of `VECTORS` it has: virtual machines of one model
    name differ in them.
    """
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    said = {name.strip(): value.split() for name, _, value in lines}
    has = said.get("flags") or said.get("Features") or []
    model = " ".join(said.get("model name") or [platform.machine()])
    return ", ".join((model, *(vector for vector in VECTORS if vector in has)))
