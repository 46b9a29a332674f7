"""Corrects the times of single kernels by the times of whole passes, in which they run in turn.

In a pass, weights come from memory, activations have left the nearest caches, and every call costs more than
in a loop over one kernel. The corrected profile has the same form (`HostProfile`): factors of the tables, and
other fixed costs. There are few terms, each with a meaning:

products    a factor by rows and by bytes of the matrix, between knots on logarithmic scales
attention   a factor by rows
passes      a factor of the time per element and one of the fixed cost of element-wise passes
calls       seconds of each product, of each attention, of each look-up of tokens, of each operation

They minimise the squared errors of the passes, relative to their times, and stay near their prior (a factor
of 1, the cost that was measured alone) where the passes say little: ridge regression without negative terms.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from emulator.calibration.operations import TimedOperation
from emulator.calibration.timed_kernels import FLOAT_BYTES
from engine.domain.host_times import ATTENTION, HostProfile, MeasuredPass, MeasuredRow
from engine.ops.cost import Kernel

ROW_KNOTS = (1, 8, 34, 128, 384)
BYTE_KNOTS = (64 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20)
RIDGE = 0.02
"""How strongly a factor is drawn to its prior, as a part of the weight of all passes together."""

CALL_SCALE_S = 10e-6
"""Fixed costs are drawn to theirs as if this were the unit."""

SHORT_S = 30e-6
"""An error of a pass counts relative to its time plus this: no run depends on the shortest ones."""

REPEATS = 2
SWEEPS = 400
LOOKUP = "lookup"

Term = tuple[str, ...] | tuple[str, int] | tuple[str, int, int]
Terms = Mapping[Term, float]


def correct(profile: HostProfile, passes: Sequence[TimedOperation]) -> HostProfile:
    """`profile` with the factors and fixed costs that fit `passes` best."""
    for _ in range(REPEATS):  # between the points of the tables, their logarithms are interpolated
        rows = [terms_of(profile, timed.kernels) for timed in passes]
        values = _fit(rows, [timed.seconds for timed in passes], _priors(profile))
        profile = _corrected(profile, values)
    return profile


def terms_of(profile: HostProfile, kernels: Sequence[Kernel]) -> dict[Term, float]:
    """What an operation of `kernels` consists of: its time is the sum of term × value."""
    found: dict[Term, float] = defaultdict(float)
    found["operation",] = 1.0
    for kernel in kernels:
        if not kernel.flops:
            continue
        if kernel.kind == "product":
            seconds = profile.product_s(kernel.name, kernel.rows, kernel.inner, kernel.cols, kernel.count)
            seconds -= profile.op_overhead_s
            found["call",] += 1.0
            for row, share in _between(ROW_KNOTS, kernel.rows):
                if kernel.name == ATTENTION:
                    found["attention", row] += share * seconds
                    continue
                for size, part in _between(BYTE_KNOTS, _matrix_bytes(profile, kernel)):
                    found["product", row, size] += share * part * seconds
        elif kernel.name == ATTENTION:
            found["attention call",] += 1.0
        else:
            fixed_s = profile.pass_s(kernel.name, 0)
            found["elements",] += profile.pass_s(kernel.name, kernel.flops) - fixed_s
            if kernel.name == LOOKUP:
                found["look-up",] += 1.0
            else:
                found["pass",] += fixed_s
    return dict(found)


def _matrix_bytes(profile: HostProfile, kernel: Kernel) -> float:
    """Bytes of the matrix in the table that `kernel` is timed by: the largest one for any that is larger."""
    inner = min(kernel.inner, max(row.inner for row in profile.products))
    return inner * min(kernel.cols, max(row.cols for row in profile.products)) * FLOAT_BYTES


def _priors(profile: HostProfile) -> dict[Term, float]:
    passes = {item.name: item for item in profile.passes}
    attention = passes.get(ATTENTION)
    lookup = passes.get(LOOKUP)
    found: dict[Term, float] = {
        ("operation",): profile.call_s,
        ("call",): profile.op_overhead_s,
        ("attention call",): attention.overhead_s if attention else profile.op_overhead_s,
        ("look-up",): lookup.overhead_s if lookup else profile.op_overhead_s,
        ("elements",): 1.0,
        ("pass",): 1.0,
    }
    for row in range(len(ROW_KNOTS)):
        found["attention", row] = 1.0
        for size in range(len(BYTE_KNOTS)):
            found["product", row, size] = 1.0
    return found


def _fit(
    rows: Sequence[Mapping[Term, float]], seconds: Sequence[float], priors: Mapping[Term, float]
) -> dict[Term, float]:
    """The values, none negative, of the least squared relative errors and of a ridge towards `priors`."""
    terms = list(priors)
    place = {term: number for number, term in enumerate(terms)}
    scales = np.array([CALL_SCALE_S if _is_fixed(term) else 1.0 for term in terms])
    matrix = np.zeros((len(rows), len(terms)))
    for number, (row, took_s) in enumerate(zip(rows, seconds, strict=True)):
        for term, amount in row.items():
            matrix[number, place[term]] = amount / (took_s + SHORT_S)
    target = np.array([took_s / (took_s + SHORT_S) for took_s in seconds])
    matrix *= scales
    prior = np.array([priors[term] for term in terms]) / scales
    weight = RIDGE**2 * len(rows)
    values = _non_negative(
        matrix.T @ matrix + weight * np.eye(len(terms)), matrix.T @ target + weight * prior, prior
    )
    return {term: float(value) for term, value in zip(terms, values * scales, strict=True)}


def _non_negative(gram: np.ndarray, right: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The x ≥ 0 of the least xᵀ·gram·x / 2 - right·x, by coordinate descent from `start`."""
    values = start.astype(float)
    for _ in range(SWEEPS):
        for at in range(len(values)):
            step = (right[at] - gram[at] @ values) / gram[at, at]
            values[at] = max(0.0, values[at] + step)
    return values


def _is_fixed(term: Term) -> bool:
    """Whether a term's value is seconds of a call, in place of a factor."""
    return len(term) == 1 and term[0] not in ("elements", "pass")


def _corrected(profile: HostProfile, values: Terms) -> HostProfile:
    """The profile with the fitted values in the place of its own."""
    passes = [
        _corrected_pass(item, values) for item in profile.passes if item.name not in (ATTENTION, LOOKUP)
    ]
    known = {item.name: item for item in profile.passes}
    per_element_s = known[LOOKUP].s_per_element if LOOKUP in known else profile.elementwise_s_per_element
    passes.append(
        MeasuredPass(
            name=LOOKUP,
            overhead_s=values["look-up",],
            s_per_element=per_element_s * values["elements",],
        )
    )
    passes.append(MeasuredPass(name=ATTENTION, overhead_s=values["attention call",], s_per_element=0.0))
    changed = {
        "products": tuple(_corrected_row(row, _product_factor(row, values)) for row in profile.products),
        "attention": tuple(
            _corrected_row(row, _row_factor("attention", row, values)) for row in profile.attention
        ),
        "passes": tuple(passes),
        "elementwise_s_per_element": max(1e-15, profile.elementwise_s_per_element * values["elements",]),
        "op_overhead_s": max(1e-9, values["call",]),
        "call_s": values["operation",],
    }
    # not `model_copy`, which would also copy the grids that the profile keeps of its former tables
    return HostProfile.model_validate(dict(profile) | changed)


def _corrected_pass(item: MeasuredPass, values: Terms) -> MeasuredPass:
    return item.model_copy(
        update={
            "overhead_s": item.overhead_s * values["pass",],
            "s_per_element": item.s_per_element * values["elements",],
        }
    )


def _corrected_row(row: MeasuredRow, factor: float) -> MeasuredRow:
    return row.model_copy(update={"s_per_flop": max(1e-15, row.s_per_flop * factor)})


def _product_factor(row: MeasuredRow, values: Terms) -> float:
    return sum(
        share * part * values["product", at, size]
        for at, share in _between(ROW_KNOTS, row.rows)
        for size, part in _between(BYTE_KNOTS, row.inner * row.cols * FLOAT_BYTES)
    )


def _row_factor(term: str, row: MeasuredRow, values: Terms) -> float:
    return sum(share * values[term, at] for at, share in _between(ROW_KNOTS, row.rows))


def _between(knots: Sequence[int], value: float) -> tuple[tuple[int, float], ...]:
    """The numbers of the knots around `value` with their shares, linear in the logarithm."""
    at = bisect_right(knots, value)
    if at in (0, len(knots)):
        return ((min(at, len(knots) - 1), 1.0),)
    share = math.log(value / knots[at - 1]) / math.log(knots[at] / knots[at - 1])
    return (at - 1, 1.0 - share), (at, share)
