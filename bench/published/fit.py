"""Rates per format of weights that presets get from published rates of tokens, and what tests them.

The rates are fitted to all sources. How far they are off is measured with sources that took no part: each
third of them in turn is predicted by a fit to the other two, wherever those have the same board in the same
format. Rows of one source are never parted, because one machine and one person's settings are behind all.

What a board gets of its rows says `topologies/rate_fit.py`.

A board without any published rate gets rates for weights of 8 and 4 bits, too: the median share of memory
rate that the fitted boards of its kind reach with them, and the FLOP/s of its data sheet. How far such rates
are off is measured on the fitted boards, each from the others of its kind.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from engine.domain.cluster import DeviceSpec
from engine.domain.rates import FormatBits, FormatRate, format_bits
from topologies.presets import preset
from topologies.published import PublishedRate
from topologies.published_runs import Compared, compared
from topologies.rate_fit import fit, half_rows, shortened

QUANTISED: tuple[FormatBits, ...] = (8, 4)
PARTS = 3
KINDS: dict[str, tuple[str, ...]] = {
    "Apple's graphics processors": ("apple-",),
    "graphics processors that share the board's memory": ("jetson-", "dgx-", "ryzen-ai-", "snapdragon-"),
    "NVIDIA's graphics cards": ("rtx-", "a100-"),
}
"""Kinds of boards that compute otherwise than with their processor's cores, by how their names begin."""
PROCESSORS = "processors"


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


def each_source(rows: Sequence[PublishedRate]) -> list[frozenset[str]]:
    """The pages one by one: all that others published of a board tests what one did."""
    return [frozenset([page]) for page in sorted({row.page for row in rows})]


def by_other_sources(rows: Sequence[PublishedRate], parts: Sequence[frozenset[str]]) -> list[Compared]:
    """Every rate by a fit to the sources of the other parts, if they have its board, format and kind."""
    found = []
    for part in parts:
        boards = by_board(row for row in rows if row.page not in part)
        left_out_of = {row.board for row in rows if row.page in part}
        for name, known in boards.items():
            if name not in left_out_of:
                continue
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
