"""The times of a host that is not calibrated, from the table of its kernels: cautious, for a dilation only.

The probe of the kernels (`linear_probe.py`) times products with weights alone. In a run, their weights come
from memory, every call costs more than in a loop, and other devices compute beside them. What a calibration
finds of that, `MARGIN` and the costs of calls stand for here, so that no dilation is smaller than by a
calibration. They say nothing of how long a run at native speed takes.
"""

from __future__ import annotations

from itertools import product

from engine.domain.host_times import CallCosts, HostProfile, MeasuredRow
from engine.ops.torch_kernels.linear_table import LinearTable
from engine.worlds.real.dilation import CAUTIOUS

MARGIN = 1.3
CALLS = CallCosts(
    width=1.0, operation_s=20e-6, product_s=10e-6, attention_s=60e-6, lookup_s=20e-6, pass_s=10e-6
)


def probed_profile(table: LinearTable) -> HostProfile:
    """Products of the probed rows and sides, the slower side where a matrix has two; memory as fast as one
    row reads the largest matrix; the rest as of an unknown host.
    """
    flop_s = {
        (one.rows, one.side): MARGIN * one.seconds[one.kernel] / (2 * one.rows * one.side**2)
        for one in table.choices
        if one.dtype == "float32"
    }
    sides = {side for _, side in flop_s}
    row_s_per_byte = flop_s[1, max(sides)] / 2  # 2 FLOPs per element of 4 bytes
    return HostProfile.model_validate(
        dict(CAUTIOUS)
        | {
            "host": table.processor,
            "products": tuple(
                MeasuredRow(
                    rows=rows, inner=inner, cols=cols, s_per_flop=max(flop_s[rows, inner], flop_s[rows, cols])
                )
                for rows, inner, cols in product({rows for rows, _ in flop_s}, sides, sides)
            ),
            "memory_byte_per_s": 1 / row_s_per_byte,
            "calls": (CALLS,),
        }
    )
