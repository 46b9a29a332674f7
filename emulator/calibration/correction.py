"""Corrects the times of single kernels by the times of whole passes, in which they run in turn.

In a pass, weights come from memory, activations have left the nearest caches, and every call costs more than
in a loop over one kernel. The corrected profile has the same form (`HostProfile`): factors of the tables, and
other fixed costs. There are few terms, each with a meaning:

products    a factor by rows and by bytes of the matrix, between knots on logarithmic scales
attention   a factor by rows
passes      a factor of the time per element and one of the fixed cost of element-wise passes
calls       seconds of each operation, product, product with a quantised matrix, attention, look-up of tokens
            and other pass, by the width of the model: the wider, the more weights pass through the caches
            between two calls (`CallCosts`)

They minimise the errors of the passes, relative to their times: squared, but no more than in proportion where
an error is large (P. J. Huber, Robust Estimation of a Location Parameter, 1964), because another user of the
machine slows a few passes far more than any term explains. They stay near their prior (a factor of 1, the
cost that was measured alone) where the passes say little: ridge regression without negative terms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypeVar

import numpy as np

from emulator.calibration.operations import TimedOperation
from emulator.calibration.timed_kernels import FLOAT_BYTES
from engine.domain.host_times import ATTENTION, LOOKUP, CallCosts, HostProfile, MeasuredPass, MeasuredRow
from engine.domain.interpolation import neighbours
from engine.domain.rates import format_bits
from engine.domain.units import BITS_PER_BYTE
from engine.ops.cost import width_of
from engine.ops.kernels import Kernel

ROW_KNOTS = (1, 8, 34, 128, 384)
BYTE_KNOTS = (64 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20, 128 << 20)
HEAD_COLS = 32768.0
WIDTH_KNOTS = (128, 320, 640, 1024)
RIDGE = 0.02
"""How strongly a factor is drawn to its prior, as a part of the weight of all passes together."""

CALL_SCALE_S = 40e-6
"""The unit in which fixed costs are drawn to their priors."""

SHORT_S = 30e-6
"""An error of a pass counts relative to its time plus this: no run depends on the shortest ones."""

NO_CALL_S = 1e-9
"""Stands for the cost of a product's call alone, which a profile wants above 0."""

LARGE_ERROR = 0.1
"""The relative error above which errors count in proportion, not squared."""

REPEATS = 2
REWEIGHTINGS = 12
SWEEPS = 400
SETTLED = 1e-7
"""A sweep that changes no factor by more is the last."""

CALLS = ("operation_s", "product_s", "packed_s", "attention_s", "lookup_s", "pass_s")
"""The fields of `CallCosts`."""

Term = tuple[str | int, ...]
Terms = Mapping[Term, float]
PLAIN = 0
"""Stands for the bits of matrices that are not quantised, among those of tables."""

AnyRow = TypeVar("AnyRow", bound=MeasuredRow)


def correct(profile: HostProfile, passes: Sequence[TimedOperation]) -> HostProfile:
    """`profile` with the factors and fixed costs that fit `passes` best."""
    profile = _with_head(profile)
    for _ in range(REPEATS):  # between the points of the tables, their logarithms are interpolated
        rows = [terms_of(profile, timed.kernels) for timed in passes]
        values = _fit(rows, [timed.seconds for timed in passes], _priors(profile))
        profile = _corrected(profile, values)
    return profile


def _with_head(profile: HostProfile) -> HostProfile:
    """`profile` with the times of its widest products also for matrices as wide as a vocabulary, which have a
    factor of their own.
    """
    tables = {"products": _widened(profile.products), "packed": _widened(profile.packed)}
    return HostProfile.model_validate(dict(profile) | tables)


def _widened(table: tuple[AnyRow, ...]) -> tuple[AnyRow, ...]:
    widest = max((row.cols for row in table), default=HEAD_COLS)
    if widest >= HEAD_COLS:
        return table
    return (*table, *(row.model_copy(update={"cols": HEAD_COLS}) for row in table if row.cols == widest))


def terms_of(profile: HostProfile, kernels: Sequence[Kernel]) -> dict[Term, float]:
    """What an operation of `kernels` consists of: its time is the sum of term × value."""
    found: dict[Term, float] = defaultdict(float)
    widths = neighbours(WIDTH_KNOTS, width_of(kernels))

    def call(field: str) -> None:
        for width, share in widths:
            found[field, width] += share

    call("operation_s")
    for kernel in kernels:
        bits = format_bits(kernel.weight_bits) if profile.knows(kernel.weight_bits) else PLAIN
        if not kernel.flops:
            continue
        if kernel.kind == "product":
            sizes = kernel.rows, kernel.inner, kernel.cols, kernel.count
            seconds = profile.product_s(kernel.name, *sizes, bits) - profile.op_overhead_s
            if kernel.name == ATTENTION:
                for row, share in neighbours(ROW_KNOTS, kernel.rows):
                    found["attention", row] += share * seconds
                continue
            if not kernel.inside:
                call("product_s" if bits == PLAIN else "packed_s")
            for row, share in neighbours(ROW_KNOTS, kernel.rows):
                for size, part in neighbours(BYTE_KNOTS, _matrix_bytes(profile, kernel, bits)):
                    found["product", bits, row, size] += share * part * seconds
        elif kernel.inside:
            continue
        elif kernel.name == ATTENTION:
            call("attention_s")
        elif bits == PLAIN:  # else it restores weights, which is in the time of their product
            fixed_s = profile.pass_s(kernel.name, 0)
            found["elements",] += profile.pass_s(kernel.name, kernel.flops) - fixed_s
            if kernel.name == LOOKUP:
                call("lookup_s")
            else:
                found["pass",] += fixed_s
                call("pass_s")
    return dict(found)


def _tables(profile: HostProfile) -> dict[int, list[MeasuredRow]]:
    """The tables of products by the bits of their matrices."""
    found: dict[int, list[MeasuredRow]] = {PLAIN: list(profile.products)}
    for row in profile.packed:
        found.setdefault(row.bits, []).append(row)
    return found


def _matrix_bytes(profile: HostProfile, kernel: Kernel, bits: int) -> float:
    """Bytes of the matrix in the table that `kernel` is timed by: the largest one for any that is larger."""
    table = _tables(profile)[bits]
    inner = min(kernel.inner, max(row.inner for row in table))
    return inner * min(kernel.cols, max(row.cols for row in table)) * _bytes_of(bits)


def _bytes_of(bits: int) -> float:
    """Bytes of a number of a matrix."""
    return FLOAT_BYTES if bits == PLAIN else bits / BITS_PER_BYTE


def _priors(profile: HostProfile) -> dict[Term, float]:
    found: dict[Term, float] = {("elements",): 1.0, ("pass",): 1.0}
    for number, width in enumerate(WIDTH_KNOTS):
        calls = profile.calls_at(width)
        found["operation_s", number] = profile.call_s + calls.operation_s
        found["product_s", number] = profile.op_overhead_s + calls.product_s
        found["packed_s", number] = profile.op_overhead_s + calls.packed_s
        found["attention_s", number] = (
            profile.pass_s(ATTENTION, 0) + 2 * profile.op_overhead_s + calls.attention_s
        )
        found["lookup_s", number] = profile.pass_s(LOOKUP, 0) + calls.lookup_s
        found["pass_s", number] = calls.pass_s
    for row in range(len(ROW_KNOTS)):
        found["attention", row] = 1.0
        for bits, size in product(_tables(profile), range(len(BYTE_KNOTS))):
            found["product", bits, row, size] = 1.0
    return found


def _fit(
    rows: Sequence[Mapping[Term, float]], seconds: Sequence[float], priors: Mapping[Term, float]
) -> dict[Term, float]:
    """The values, none negative, of the least relative errors and of a ridge towards `priors`.

    Iteratively reweighted least squares: errors above `LARGE_ERROR` get weights below 1.
    """
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
    ridge = RIDGE**2 * len(rows)
    weights, values = np.ones(len(rows)), prior
    for _ in range(REWEIGHTINGS):
        weighted = matrix.T * weights
        gram = weighted @ matrix + ridge * np.eye(len(terms))
        values = _non_negative(gram, weighted @ target + ridge * prior, values)
        errors = np.abs(matrix @ values - target)
        weights = LARGE_ERROR / np.maximum(errors, LARGE_ERROR)
    return {term: float(value) for term, value in zip(terms, values * scales, strict=True)}


def _non_negative(gram: np.ndarray, right: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The x ≥ 0 of the least xᵀ·gram·x / 2 - right·x, by coordinate descent from `start`."""
    values = start.astype(float)
    for _ in range(SWEEPS):
        before = values.copy()
        for at in range(len(values)):
            step = (right[at] - gram[at] @ values) / gram[at, at]
            values[at] = max(0.0, values[at] + step)
        if np.abs(values - before).max() <= SETTLED:
            break
    return values


def _is_fixed(term: Term) -> bool:
    """Whether a term's value is seconds of a call, in place of a factor."""
    return term[0] in CALLS


def _corrected(profile: HostProfile, values: Terms) -> HostProfile:
    """The profile with the fitted values in the place of its own, all fixed costs of calls in `calls`."""
    calls = tuple(
        CallCosts(width=width, **{field: values[field, number] for field in CALLS})
        for number, width in enumerate(WIDTH_KNOTS)
    )
    changed = {
        "products": tuple(_corrected_product(row, PLAIN, values) for row in profile.products),
        "packed": tuple(_corrected_product(row, row.bits, values) for row in profile.packed),
        "attention": tuple(
            _corrected_row(row, _row_factor("attention", row, values)) for row in profile.attention
        ),
        "passes": tuple(_corrected_pass(item, values) for item in profile.passes),
        "elementwise_s_per_element": max(1e-15, profile.elementwise_s_per_element * values["elements",]),
        "op_overhead_s": NO_CALL_S,
        "call_s": 0.0,
        "calls": calls,
    }
    # not `model_copy`, which would also copy the grids that the profile keeps of its former tables
    return HostProfile.model_validate(dict(profile) | changed)


def _corrected_pass(item: MeasuredPass, values: Terms) -> MeasuredPass:
    whole = item.name in (ATTENTION, LOOKUP)  # what these calls cost is in `calls` altogether
    return item.model_copy(
        update={
            "overhead_s": 0.0 if whole else item.overhead_s * values["pass",],
            "s_per_element": item.s_per_element * values["elements",],
        }
    )


def _corrected_row(row: AnyRow, factor: float) -> AnyRow:
    return row.model_copy(update={"s_per_flop": max(1e-15, row.s_per_flop * factor)})


def _corrected_product(row: AnyRow, bits: int, values: Terms) -> AnyRow:
    factor = sum(
        share * part * values["product", bits, at, size]
        for at, share in neighbours(ROW_KNOTS, row.rows)
        for size, part in neighbours(BYTE_KNOTS, row.inner * row.cols * _bytes_of(bits))
    )
    return _corrected_row(row, factor)


def _row_factor(term: str, row: MeasuredRow, values: Terms) -> float:
    return sum(share * values[term, at] for at, share in neighbours(ROW_KNOTS, row.rows))
