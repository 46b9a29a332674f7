"""Rates per format of weights that presets get from published rates of tokens, and what tests them.

The rates are fitted to all sources. How far they are off is measured with sources that took no part: each
third of them in turn is predicted by a fit to the other two, wherever those have the same board in the same
format. Rows of one source are never parted, because one machine and one person's settings are behind all.

A board has two numbers per format of weights, whatever the number of its rows: FLOP/s from prompts, and the
share of its memory rate from decoding. Without published prompts, FLOP/s are the device's own, or what
decoding needs. A format without published rates takes those of the nearest one of the same board, except that
wider weights are read faster, up to the whole memory rate: where unpacking is what takes the time, it takes
as long per weight.

A board without any published rate gets rates for weights of 8 and 4 bits, too: the median share of memory
rate that the fitted boards of its kind reach with them, and the FLOP/s of its data sheet. How far such rates
are off is measured on the fitted boards, each from the others of its kind.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from engine.domain.cluster import DeviceSpec
from engine.domain.rates import FormatBits, FormatRate, format_bits
from topologies.presets import preset
from topologies.published import PublishedRate
from topologies.published_runs import Compared, compared

ROUNDS = 6
"""Rounds of correcting each rate by the mean ratio; the fixed time of kernels makes the first
ones too small.
"""
FORMATS: tuple[FormatBits, ...] = (16, 8, 4)
QUANTISED: tuple[FormatBits, ...] = (8, 4)
PARTS = 3
KINDS: dict[str, tuple[str, ...]] = {
    "Apple's graphics processors": ("apple-",),
    "NVIDIA's boards with shared memory": ("jetson-",),
    "NVIDIA's graphics cards": ("rtx-", "a100-"),
}
"""Kinds of boards that compute otherwise than with their processor's cores, by how their names begin."""
PROCESSORS = "processors"


def fit(device: DeviceSpec, rows: Sequence[PublishedRate]) -> DeviceSpec:
    """`device` with the rates that bring the predictions of `rows` to the published figures, in the mean."""
    bits_of = {row: format_bits(row.weight_bits) for row in rows}
    first = FormatRate(
        bits=16, flop_per_s=device.flop_per_s, memory_frac=0.8, basis="fitted to published rates"
    )
    rates = {
        bits: first.model_copy(
            update={"bits": bits, "source": pages(row for row in rows if bits_of[row] == bits)}
        )
        for bits in sorted(set(bits_of.values()))
    }
    for _ in range(ROUNDS):
        device = device.model_copy(update={"format_rates": tuple(rates.values())})
        for bits, rate in rates.items():
            found = [one for row in rows if bits_of[row] == bits for one in compared(device, row)]
            decode = [1 / one.ratio for one in found if one.what == "decoding"]
            prompt = [1 / one.ratio for one in found if one.what == "prompt"]
            frac = rate.memory_frac * _mean(decode)
            faster = _mean(prompt) if prompt else max(1.0, frac)  # decoding says the least that it can be
            flop_per_s = _short(rate.flop_per_s * faster)
            update = {
                "flop_per_s": flop_per_s,
                "memory_frac": min(1.0, round(frac, 3)),
                "half_rows": half_rows(device, bits, flop_per_s),
            }
            rates[bits] = rate.model_copy(update=update)
    return device.model_copy(update={"format_rates": tuple(_filled(device, rates))})


def half_rows(device: DeviceSpec, bits: FormatBits, flop_per_s: float) -> float | None:
    """The `half_rows` of a fitted rate: the device's own (None), unless that would leave one row to
    arithmetic: libraries have kernels for few rows. None: the device's own.
    """
    needed_flop_per_s = 2 * device.memory_byte_per_s * 8 / bits  # while the weights are read
    most = max(0.0, math.floor(100 * (flop_per_s / needed_flop_per_s - 1)) / 100)
    return most if most < device.half_rows else None


def _filled(device: DeviceSpec, rates: dict[FormatBits, FormatRate]) -> Iterable[FormatRate]:
    for bits in FORMATS if rates else ():
        nearest = min(rates, key=lambda known: (abs(math.log2(known / bits)), known))
        if nearest == bits:
            yield rates[bits]
        else:
            frac = min(1.0, rates[nearest].memory_frac * max(1.0, bits / nearest))
            flop_per_s = rates[nearest].flop_per_s
            yield FormatRate(
                bits=bits,
                flop_per_s=flop_per_s,
                memory_frac=frac,
                half_rows=half_rows(device, bits, flop_per_s),
                basis="fitted in another format",
                source=rates[nearest].source,
            )


def pages(rows: Iterable[PublishedRate]) -> str:
    """The pages of these rows."""
    return shortened(dict.fromkeys(row.page.removeprefix("https://").removeprefix("http://") for row in rows))


def shortened(names: Iterable[str]) -> str:
    first, second, *more = (*names, "", "")
    others = len([name for name in more if name])
    return ", ".join(filter(None, (first, second))) + (f" and {others} more" if others else "")


def bare(name: str) -> DeviceSpec:
    """The preset without rates per format."""
    return preset(name).model_copy(update={"format_rates": ()})


def by_board(rows: Iterable[PublishedRate]) -> dict[str, list[PublishedRate]]:
    boards: dict[str, list[PublishedRate]] = {}
    for row in rows:
        boards.setdefault(row.board, []).append(row)
    return boards


def thirds(rows: Sequence[PublishedRate]) -> list[frozenset[str]]:
    """The pages in three parts of nearly as many rows: the largest first, those of equal size by name."""
    sizes = Counter(row.page for row in rows)
    order = sorted(sizes, key=lambda page: (-sizes[page], page))
    return [frozenset(order[part::PARTS]) for part in range(PARTS)]


def tested(rows: Sequence[PublishedRate]) -> list[Compared]:
    """Every rate by a fit to the sources of the other two thirds, if they have its board, format and kind."""
    found = []
    for part in thirds(rows):
        boards = by_board(row for row in rows if row.page not in part)
        for name, known in boards.items():
            device = fit(bare(name), known)
            kinds = {(format_bits(row.weight_bits), what) for row in known for what in published_kinds(row)}
            for row in rows:
                if row.board == name and row.page in part:
                    bits = format_bits(row.weight_bits)
                    found += [one for one in compared(device, row) if (bits, one.what) in kinds]
    return found


def published_kinds(row: PublishedRate) -> tuple[str, ...]:
    known = {"decoding": row.decode_tokens_per_s, "prompt": row.prompt_tokens_per_s}
    return tuple(what for what, rate in known.items() if rate)


def kind(name: str) -> str:
    return next((kind for kind, starts in KINDS.items() if name.startswith(starts)), PROCESSORS)


def derive(device: DeviceSpec, fitted: Mapping[str, DeviceSpec]) -> DeviceSpec:
    """`device` with rates for quantised weights as boards of its kind reach them in the median.

    Other compute models than the roofline have no rates per format.
    """
    if device.compute_model != "roofline":
        return device.model_copy(update={"format_rates": ()})
    like = [other for other in fitted.values() if kind(other.name) == kind(device.name)]
    rates = []
    for bits in QUANTISED:
        known = {other.name: rate for other in like if (rate := other.format_rate(bits))}
        direct = {name: rate for name, rate in known.items() if rate.basis == "fitted to published rates"}
        shares = {name: rate.memory_frac for name, rate in (direct or known).items()}
        rates.append(
            FormatRate(
                bits=bits,
                flop_per_s=device.flop_per_s,
                half_rows=half_rows(device, bits, device.flop_per_s),
                memory_frac=round(statistics.median(shares.values()), 3),
                basis="derived from other boards",
                source=f"median of {shortened(shares)}",
            )
        )
    return device.model_copy(update={"format_rates": tuple(rates)})


def left_out(fitted: Mapping[str, DeviceSpec], name: str) -> DeviceSpec:
    """The board `name` as if it had no published rates."""
    return derive(fitted[name], {other: fitted[other] for other in fitted if other != name})


def _mean(ratios: Sequence[float]) -> float:
    """The geometric mean; 1 of none."""
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else 1.0


def _short(value: float) -> float:
    return float(f"{value:.3g}")
