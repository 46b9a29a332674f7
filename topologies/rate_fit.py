"""Fits a device's rates per format of weights to rates of tokens that somebody measured on it.

A device has two numbers per format, whatever the number of rows: FLOP/s from prompts, and the share of its
memory rate from decoding. Without prompts, FLOP/s are the device's own, or what decoding needs; those of the
other format of few bits, if that has prompts: both are unpacked, and multiplied alike. A format without rates
takes those of the nearest one, except that wider weights are read faster, up to the whole memory rate: where
unpacking is what takes the time, it takes as long per weight.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from engine.domain.cluster import DeviceSpec
from engine.domain.rates import Basis, FormatBits, FormatRate, few_rows, format_bits
from topologies.published import PublishedRate
from topologies.published_runs import compared

ROUNDS = 6
"""Rounds of correcting each rate by the mean ratio; the fixed time of kernels makes the first
ones too small.
"""
FORMATS: tuple[FormatBits, ...] = (16, 8, 4)


class Bases(NamedTuple):
    """What the rates of a format are that was measured, and of one that was not."""

    measured: Basis
    other: Basis


PUBLISHED = Bases("fitted to published rates", "fitted in another format")
BENCHMARK = Bases("fitted to a benchmark", "derived from a benchmark")


def fit(
    device: DeviceSpec,
    rows: Sequence[PublishedRate],
    bases: Bases = PUBLISHED,
    memory_rises: bool = False,
) -> DeviceSpec:
    """`device` with the rates that bring the predictions of `rows` to their figures, in the mean.

    `memory_rises`: the device's memory rate is another one's; if decoding needs more, it becomes that.
    """
    bits_of = {row: format_bits(row.weight_bits) for row in rows}
    prompted = {bits for row, bits in bits_of.items() if row.prompt_tokens_per_s}
    least_byte_per_s = device.memory_byte_per_s
    rates = {
        bits: FormatRate(
            bits=bits,
            flop_per_s=device.flop_per_s,
            memory_frac=0.8,
            half_rows=half_rows(device, bits, device.flop_per_s),
            basis=bases.measured,
            source=pages(row for row in rows if bits_of[row] == bits),
        )
        for bits in sorted(set(bits_of.values()))
    }
    for _ in range(ROUNDS):
        device = device.model_copy(
            update={"format_rates": tuple(_filled(device, rates, prompted, bases.other))}
        )
        reached: dict[FormatBits, tuple[float, float]] = {}  # FLOP/s, and byte/s of decoding
        for bits, rate in rates.items():
            found = [one for row in rows if bits_of[row] == bits for one in compared(device, row)]
            decode = [1 / one.ratio for one in found if one.what == "decoding"]
            prompt = [1 / one.ratio for one in found if one.what == "prompt"]
            frac = rate.memory_frac * _mean(decode)
            faster = _mean(prompt) if prompt else max(1.0, frac)  # decoding says the least that it can be
            reached[bits] = _short(rate.flop_per_s * faster), frac * device.memory_byte_per_s
        for bits, other in ((8, 4), (4, 8)):
            if bits in rates and bits not in prompted and other in prompted:
                reached[bits] = reached[other][0], reached[bits][1]
        if memory_rises:
            most = max(least_byte_per_s, *(byte_per_s for _, byte_per_s in reached.values()))
            device = device.model_copy(update={"memory_byte_per_s": _short(most)})
        for bits, (flop_per_s, byte_per_s) in reached.items():
            update = {
                "flop_per_s": flop_per_s,
                "memory_frac": min(1.0, round(byte_per_s / device.memory_byte_per_s, 3)),
                "half_rows": half_rows(device, bits, flop_per_s),
            }
            rates[bits] = rates[bits].model_copy(update=update)
    return device.model_copy(update={"format_rates": tuple(_filled(device, rates, prompted, bases.other))})


def half_rows(device: DeviceSpec, bits: FormatBits, flop_per_s: float) -> float | None:
    """The `half_rows` of a fitted rate of `device`; None: the device's own."""
    return few_rows(bits, flop_per_s, device.memory_byte_per_s, device.half_rows)


def _filled(
    device: DeviceSpec, rates: dict[FormatBits, FormatRate], prompted: Set[FormatBits], basis: Basis
) -> Iterable[FormatRate]:
    for bits in FORMATS if rates else ():
        nearest = min(rates, key=lambda known: (abs(math.log2(known / bits)), known))
        if nearest == bits:
            yield rates[bits]
        else:
            frac = min(1.0, rates[nearest].memory_frac * max(1.0, bits / nearest))
            is_of_prompts = nearest in prompted or not prompted
            flop_per_s = rates[nearest].flop_per_s if is_of_prompts else device.flop_per_s
            yield FormatRate(
                bits=bits,
                flop_per_s=flop_per_s,
                memory_frac=frac,
                half_rows=half_rows(device, bits, flop_per_s),
                basis=basis,
                source=rates[nearest].source,
            )


def pages(rows: Iterable[PublishedRate]) -> str:
    """The pages of these rows."""
    return shortened(dict.fromkeys(row.page.removeprefix("https://").removeprefix("http://") for row in rows))


def shortened(names: Iterable[str]) -> str:
    first, second, *more = (*names, "", "")
    others = len([name for name in more if name])
    return ", ".join(filter(None, (first, second))) + (f" and {others} more" if others else "")


def _mean(ratios: Sequence[float]) -> float:
    """The geometric mean; 1 of none."""
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else 1.0


def _short(value: float) -> float:
    return float(f"{value:.3g}")
