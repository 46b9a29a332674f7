"""Turns the times of kernels by themselves into the tables that predict operations."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from emulator.calibration.known import host_name
from emulator.calibration.timed_kernels import (
    ATTENTION_HEADS,
    PASS_COLS,
    PASS_ROWS,
    WORKING_SET_BYTES,
    Name,
    pass_names,
    passes_in,
)
from engine.domain.host_times import CallCosts, HostProfile, MeasuredPass, MeasuredRow, PackedRow

LEAST_FRAC = 0.2
"""Of a product with a small quantised matrix, the least that counts as its own time: a busy moment may let
its call alone seem to take as long.
"""

Times = Mapping[Name, float]
"""Seconds of every figure of `timed_kernels.py`."""


def as_tables(times: Times) -> HostProfile:
    """The profile from the times, without the cost of calling attention."""
    passes = tuple(_pass(times, name) for name in pass_names())
    return HostProfile(
        host=host_name(),
        products=tuple(_products(times)),
        elementwise_s_per_element=statistics.fmean(item.s_per_element for item in passes),
        op_overhead_s=max(1e-9, times["call in place",]),
        memory_byte_per_s=WORKING_SET_BYTES / times["memory",],
        attention=tuple(_attention(times)),
        packed=tuple(_packed(times)),
        passes=passes,
        calls=(CallCosts(width=1, packed_s=_packed_call_s(times)),),
    )


def _products(times: Times) -> Iterator[MeasuredRow]:
    for name, seconds in times.items():
        if name[0] == "product":
            yield _row(name[1:], 1, seconds - times["call",])


def _packed(times: Times) -> Iterator[PackedRow]:
    """Without their calls, which take as long as the rest of a small product, and which one row through a
    whole part of a layer does not have (`row_layer.py`).
    """
    for name, seconds in times.items():
        if name[0] == "packed":
            called_s = times["packed call", *name[1:3]]
            alone_s = max(LEAST_FRAC * seconds, seconds - called_s)
            yield PackedRow(bits=name[1], **dict(_row(name[2:], 1, alone_s)))


def _packed_call_s(times: Times) -> float:
    """How much longer than any other call one of a product with a quantised matrix takes, for one row."""
    calls_s = [seconds for name, seconds in times.items() if name[0] == "packed call" and name[2] == 1]
    return max(0.0, statistics.fmean(calls_s) - times["call",])


def _attention(times: Times) -> Iterator[MeasuredRow]:
    for name, seconds in times.items():
        if name[0] == "attention":
            # the two products share the time: each has half of the FLOPs
            yield _row(name[1:], 2 * ATTENTION_HEADS, seconds - 2 * times["call",])


def _row(sizes: Sequence[int], count: int, seconds: float) -> MeasuredRow:
    rows, inner, cols = sizes
    flops = 2 * rows * inner * cols * count
    return MeasuredRow(rows=rows, inner=inner, cols=cols, s_per_flop=max(1e-15, seconds / flops))


def _pass(times: Times, name: str) -> MeasuredPass:
    """The overhead and the time per element of a pass, from its times on few and on many rows."""
    few, many = (rows * PASS_COLS * passes_in(name) for rows in PASS_ROWS)
    few_s, many_s = (times["pass", name, rows] for rows in PASS_ROWS)
    per_element_s = max(0.0, many_s - few_s) / (many - few)
    return MeasuredPass(
        name=name, overhead_s=max(0.0, few_s - per_element_s * few), s_per_element=per_element_s
    )
