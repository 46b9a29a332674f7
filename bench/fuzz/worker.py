"""`python -m bench.fuzz.worker SEED FIRST STOP STEP NATIVE SCHEDULED STRATEGY…`: cases FIRST, FIRST + STEP, …
below STOP, with NATIVE 1 as runs of processes of their own, with SCHEDULED 1 those whose requests meet.

It checks them and writes one JSON line per case, `[index, end, sentence]`, as soon as the case is checked.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings

import torch

from bench.fuzz.check import check
from bench.fuzz.draw import draw_spec
from bench.fuzz.native import check_natively
from bench.fuzz.scheduled import draw_scheduled
from engine.models.reference.process import one_process
from engine.ops.torch_kernels.linear import use
from engine.ops.torch_kernels.linear_table import LinearTable
from engine.ops.torch_kernels.row_library import make_library
from engine.strategies.registry import named

FEW_ROWS = 3
"""Products with so many rows read matrices in 8 and 4 bits as they are; with more they restore them."""


def main(arguments: list[str]) -> int:
    seed, first, stop, step, native, scheduled = (int(number) for number in arguments[:6])
    strategies = tuple(named(name) for name in arguments[6:])
    draw = draw_scheduled if scheduled else draw_spec
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    torch.set_num_threads(1)  # tensors this small are computed sooner by one thread
    warnings.simplefilter("ignore")
    if not native:  # whose processes take the kernels of this host
        library = make_library()
        few = FEW_ROWS if library else 0
        use(LinearTable(processor="", torch="", row_library=library, packed_rows=few, choices=()))
    verdicts = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # standard output carries the verdicts, so what libraries print goes elsewhere
    with one_process():
        for index in range(first, stop, step):
            verdict = (check_natively if native else check)(draw(seed, index, strategies))
            verdicts.write(json.dumps([index, verdict.end, verdict.sentence]) + "\n")
            verdicts.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
