"""Boards: predicted rates of tokens against published ones, and the rates per format that presets get so.

Two thirds of the sources fit the rates, the others test them. A source is left to the test only if each of
its boards has another one: the smallest sources first, those of equal size by name. Rows of one source are
never parted, because one machine and one person's settings are behind all of them.

A board has two numbers per format of weights, whatever the number of its rows: FLOP/s from prompts, and the
share of its memory rate from decoding. Without published prompts, FLOP/s are the device's own, or what
decoding needs. A format without published rates takes those of the nearest one of the same board, except that
wider weights are read faster, up to the whole memory rate: where unpacking is what takes the time, it takes
as long per weight.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bench.tables.chart import Scatter
from bench.tables.rows import Table
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.rates import FormatBits, FormatRate, format_bits
from engine.domain.spec import RunSpec
from engine.domain.units import human
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from topologies.presets import FITTED, preset
from topologies.published import PublishedRate, published_rates

ROUNDS = 6
"""Of correcting each rate by the mean ratio; the fixed time of kernels makes the first ones too small."""
DECODE_FROM = 64
"""Rows in the KV cache while decoding is compared: the middle of the 128 tokens that benchmarks generate."""
PROMPT = 512
"""Tokens of a prompt whose length is not published."""
FORMATS: tuple[FormatBits, ...] = (16, 8, 4)
LIMIT = 1.6


class Compared(NamedTuple):
    """One published rate and its prediction. `tests`: its source took no part in the fit."""

    row: PublishedRate
    what: str
    published: float
    predicted: float
    tests: bool

    @property
    def ratio(self) -> float:
        return self.predicted / self.published


def measure_boards() -> Table:
    rows = [row for row in published_rates() if row.board and row.nodes == 1]
    held = held_out(rows)
    boards = {row.board: preset(row.board) for row in rows}
    fitted = {
        name: fit(
            device.model_copy(update={"format_rates": ()}),
            [row for row in rows if row.board == name and row.page not in held],
        )
        for name, device in boards.items()
    }
    found = [one for row in rows for one in compared(fitted[row.board], row, row.page in held)]
    columns = ("board", "runtime", "model", "format", "what", "predicted", "published", "ratio", "test")
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
            "yes" if one.tests else "",
        )
        for one in sorted(found, key=lambda one: (one.row.board, one.row.format, one.what))
    )
    title = (
        "Tokens per second of one board, predicted and published. Test: the source took no part in fitting "
        "the preset's rates. Sources: `topologies/published_rates.csv`."
    )
    chart = Scatter(
        "Tokens per second of one board: predicted against published",
        "published",
        "predicted",
        {
            f"{what}, {part}": marks
            for what in ("decoding", "prompt")
            for part, tests in (("fitted", False), ("test", True))
            if (
                marks := tuple(
                    (one.published, one.predicted) for one in found if (one.what, one.tests) == (what, tests)
                )
            )
        },
        lambda value: human(value, ""),
        LIMIT - 1,
    )
    return Table(title, columns, table, chart, summary(found), files={FITTED: as_toml(fitted.values())})


def held_out(rows: Sequence[PublishedRate]) -> frozenset[str]:
    """The pages that only test: at most a third of all, and none that is a board's only one."""
    sizes = Counter(row.page for row in rows)
    boards = {page: {row.board for row in rows if row.page == page} for page in sizes}
    held: set[str] = set()
    for page in sorted(sizes, key=lambda page: (sizes[page], page)):
        others = [other for other in sizes if other != page and other not in held]
        if len(held) < len(sizes) // 3 and all(
            any(board in boards[other] for other in others) for board in boards[page]
        ):
            held.add(page)
    return frozenset(held)


def fit(device: DeviceSpec, rows: Sequence[PublishedRate]) -> DeviceSpec:
    """`device` with the rates that bring the predictions of `rows` to the published figures, in the mean."""
    bits_of = {row: format_bits(row.weight_bits) for row in rows}
    first = FormatRate(
        bits=16, flop_per_s=device.flop_per_s, memory_frac=0.8, basis="fitted to published rates"
    )
    rates = {bits: first.model_copy(update={"bits": bits}) for bits in set(bits_of.values())}
    for _ in range(ROUNDS):
        device = device.model_copy(update={"format_rates": tuple(rates.values())})
        for bits, rate in rates.items():
            found = [one for row in rows if bits_of[row] == bits for one in compared(device, row, False)]
            decode = [1 / one.ratio for one in found if one.what == "decoding"]
            prompt = [1 / one.ratio for one in found if one.what == "prompt"]
            frac = rate.memory_frac * _mean(decode)
            faster = _mean(prompt) if prompt else max(1.0, frac)  # decoding says the least that it can be
            update = {"flop_per_s": _short(rate.flop_per_s * faster), "memory_frac": min(1.0, round(frac, 3))}
            rates[bits] = rate.model_copy(update=update)
    return device.model_copy(update={"format_rates": tuple(_filled(rates))})


def _filled(rates: dict[FormatBits, FormatRate]) -> Iterable[FormatRate]:
    for bits in FORMATS if rates else ():
        nearest = min(rates, key=lambda known: (abs(math.log2(known / bits)), known))
        if nearest == bits:
            yield rates[bits]
        else:
            frac = min(1.0, rates[nearest].memory_frac * max(1.0, bits / nearest))
            update = {"bits": bits, "memory_frac": frac, "basis": "fitted in another format"}
            yield rates[nearest].model_copy(update=update)


def compared(device: DeviceSpec, row: PublishedRate, tests: bool) -> list[Compared]:
    found = []
    if row.decode_tokens_per_s:
        report = predict(published_run(one_board(device), row, "single", DECODE_FROM, 3))
        found.append(Compared(row, "decoding", row.decode_tokens_per_s, 1 / report.tpot_s, tests))
    if row.prompt_tokens_per_s:
        tokens = row.prompt_tokens or PROMPT
        report = predict(published_run(one_board(device), row, "single", tokens, 1))
        found.append(Compared(row, "prompt", row.prompt_tokens_per_s, tokens / report.ttft_s, tests))
    return found


def one_board(device: DeviceSpec) -> ClusterSpec:
    return ClusterSpec(name="one", source=device.name, devices=(device,))


def published_run(
    cluster: ClusterSpec, row: PublishedRate, strategy: str, prompt_tokens: int, new_tokens: int
) -> RunSpec:
    """The published run on these boards, which have memory enough: it did run."""
    model, _ = catalogue.resolve(row.shape, "random")
    weight_bits = row.weight_bits if row.weight_bits < 16 else 0.0
    boards = tuple(device.model_copy(update={"memory_bytes": 1e12}) for device in cluster.devices)
    return RunSpec(
        cluster=cluster.model_copy(update={"devices": boards}),
        model=model.model_copy(update={"dtype": "bfloat16", "weight_bits": weight_bits}),
        strategy=strategy,
        workload=Workload(prompt_tokens=prompt_tokens, new_tokens=new_tokens),
    )


def summary(found: Sequence[Compared]) -> Table:
    """The errors per part, kind of rate, format and board."""
    groups: dict[str, list[Compared]] = {}
    for one in found:
        for name in (
            f"{one.what}, {'test' if one.tests else 'fitted'}",
            f"{one.what}, {format_bits(one.row.weight_bits)} bits",
            one.row.board,
        ):
            groups.setdefault(name, []).append(one)
    order = sorted(groups, key=lambda name: ("," not in name, name))
    columns = ("rates", "number", "median error", "largest factor", f"within a factor of {LIMIT}")
    title = "Predicted against published tokens per second: |predicted / published - 1|."
    return Table(title, columns, tuple((name, *_errors(groups[name])) for name in order))


def _errors(group: Sequence[Compared]) -> tuple[str, ...]:
    factors = [max(one.ratio, 1 / one.ratio) for one in group]
    return (
        str(len(group)),
        f"{statistics.median(abs(one.ratio - 1) for one in group):.0%}",
        f"{max(factors):.2f}",
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


def _mean(ratios: Sequence[float]) -> float:
    """The geometric mean; 1 of none."""
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else 1.0


def _short(value: float) -> float:
    return float(f"{value:.3g}")
