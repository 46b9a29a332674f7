"""Compares predicted and published rates of tokens of boards, their errors, and the file of the presets'
rates.

How the rates are fitted and tested says `bench/published/fit.py`.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence

from bench.published.fit import (
    QUANTISED,
    bare,
    by_board,
    by_other_sources,
    derive,
    each_source,
    kind,
    left_out,
    thirds,
)
from bench.tables.chart import Scatter
from bench.tables.rows import Table
from engine.domain.cluster import DeviceSpec
from engine.domain.rates import format_bits
from engine.domain.units import human
from topologies.presets import FITTED, presets, same_chips
from topologies.published import published_rates
from topologies.published_runs import Compared, compared
from topologies.rate_fit import fit

LIMIT = 1.6
LEFT_OUT = "source left out"


def measure_boards() -> Table:
    rows = [row for row in published_rates() if row.board and row.nodes == 1]
    fitted = {name: fit(bare(name), group) for name, group in by_board(rows).items()}
    found = [one for row in rows for one in compared(fitted[row.board], row)]
    tests = by_other_sources(rows, thirds(rows))
    derived = [one for row in rows for one in compared(left_out(fitted, row.board), row)]
    ratios = {(one.row.id, one.what): f"{one.ratio:.2f}" for one in tests}
    columns = (
        "board",
        "runtime",
        "model",
        "format",
        "what",
        "predicted",
        "published",
        "ratio",
        "ratio without its source",
    )
    table = tuple(
        (
            one.row.device,
            one.row.runtime,
            one.row.shape,
            one.row.format,
            one.what,
            f"{one.predicted:.3g}/s",
            f"{one.published:.3g}/s",
            f"{one.ratio:.2f}",
            ratios.get((one.row.id, one.what), ""),
        )
        for one in sorted(found, key=lambda one: (one.row.board, one.row.format, one.what))
    )
    title = (
        "Tokens per second of one board, predicted and published. The last column: by rates fitted to "
        "two thirds of the sources, of which this is none. Sources: `topologies/published_rates.csv`."
    )
    known = fitted.keys() | same_chips().keys()
    unknown = [derive(device, fitted) for device in presets() if device.name not in known]
    files = {FITTED: as_toml([*fitted.values(), *unknown])}
    total = summary(found, tests, derived, by_other_sources(rows, each_source(rows)))
    return Table(title, columns, table, chart(found, tests), total, files=files)


def chart(found: Sequence[Compared], tests: Sequence[Compared]) -> Scatter:
    return Scatter(
        "Tokens per second of one board: predicted against published",
        "published",
        "predicted",
        {
            f"{what}, {part}": marks
            for what in ("decoding", "prompt")
            for part, group in (("fitted", found), (LEFT_OUT, tests))
            if (marks := tuple((one.published, one.predicted) for one in group if one.what == what))
        },
        lambda value: human(value, ""),
        LIMIT - 1,
    )


def summary(
    found: Sequence[Compared],
    tests: Sequence[Compared] = (),
    derived: Sequence[Compared] = (),
    by_kind: Sequence[Compared] = (),
) -> Table:
    """The errors per part, kind of rate, format and board; `tests`: predicted by other sources; `derived`:
    by other boards; `by_kind`: decoding by all other sources, whose errors are told per format and kind of
    board.
    """
    groups: dict[str, list[Compared]] = {}
    for one in found:
        for name in (
            f"{one.what}, fitted",
            f"{one.what}, {format_bits(one.row.weight_bits)} bits",
            one.row.board,
        ):
            groups.setdefault(name, []).append(one)
    for one in tests:
        groups.setdefault(f"{one.what}, {LEFT_OUT}", []).append(one)
    for one in derived:
        if format_bits(one.row.weight_bits) in QUANTISED:
            groups.setdefault(f"{one.what}, by other boards of the kind", []).append(one)
    for one in by_kind:
        if one.what == "decoding":
            bits = format_bits(one.row.weight_bits)
            groups.setdefault(f"decoding, {bits:2} bits, {kind(one.row.board)}, {LEFT_OUT}", []).append(one)
    order = sorted(groups, key=lambda name: ("," not in name, name))
    columns = ("rates", "number", "median error", "nine of ten within", f"within a factor of {LIMIT}")
    title = "Predicted against published tokens per second: |predicted / published - 1|."
    return Table(title, columns, tuple((name, *_errors(groups[name])) for name in order))


def _errors(group: Sequence[Compared]) -> tuple[str, ...]:
    factors = sorted(max(one.ratio, 1 / one.ratio) for one in group)
    return (
        str(len(group)),
        f"{statistics.median(abs(one.ratio - 1) for one in group):.0%}",
        f"a factor of {factors[math.ceil(0.9 * len(factors)) - 1]:.2f}",
        f"{sum(factor <= LIMIT for factor in factors)} of {len(group)}",
    )


def as_toml(devices: Iterable[DeviceSpec]) -> str:
    lines = [
        "# Rates per format of weights, fitted to `published_rates.csv` by `./loom bench boards --write`,",
        "# which writes this file. Presets take them over by name.",
    ]
    for device in sorted(devices, key=lambda device: device.name):
        for rate in device.format_rates:
            lines += ["", "[[rate]]", f"device = {json.dumps(device.name)}"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in rate.model_dump().items()]
    return "\n".join(lines) + "\n"
