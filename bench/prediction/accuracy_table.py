"""The table and the picture of the accuracy matrix: predicted against emulated, and against native runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from bench.tables.chart import Scatter
from bench.tables.rows import Table
from engine.domain.units import human, human_s
from engine.experiments.design.expand import Point
from engine.experiments.results.rows import Result
from engine.reports.against_model import percentile_95

TIMES = ("latency_s", "ttft_s", "tpot_s")
CALM = ("condition", "calm")
NATIVE_ROWS = Path(__file__).resolve().parents[2] / "docs" / "results" / "fidelity-reality.json"
"""What `./loom bench reality --write` keeps: runs at native speed, predicted and measured."""


class Spread(NamedTuple):
    """The predicted latencies of one run with different seeds, s."""

    latencies_s: tuple[float, ...]


class Compared(NamedTuple):
    """One run, emulated and predicted. `errors`: predicted / emulated - 1, by metric, where it has one.
    `same_bytes`: on every direction of every link.
    """

    digest: str
    coordinates: Mapping[str, object]
    predicted_s: float
    emulated_s: float
    errors: Mapping[str, float]
    same_bytes: bool
    is_valid: bool
    code_version: str


class Row(NamedTuple):
    """Errors of some runs, by metric."""

    name: str
    errors: Mapping[str, Sequence[float]]
    number: int
    same_bytes: int | None = None


def compared(points: Sequence[Point], results: Mapping[tuple[str, str], Result]) -> Iterator[Compared]:
    """The points that have finished in both worlds."""
    for point in points:
        predicted = results.get((point.digest, "predicted"))
        emulated = results.get((point.digest, "emulated"))
        if predicted is None or emulated is None:
            continue
        if predicted.outcome != "finished" or emulated.outcome != "finished":
            continue
        ours, theirs = predicted.metrics, emulated.metrics
        yield Compared(
            point.digest,
            point.coordinates,
            ours["latency_s"],
            theirs["latency_s"],
            {name: ours[name] / theirs[name] - 1 for name in TIMES if theirs.get(name)},
            _on_links(ours) == _on_links(theirs),
            theirs.get("valid") == 1.0,
            emulated.code_version,
        )


def _on_links(metrics: Mapping[str, float]) -> dict[str, float]:
    """The bytes in all, and of every direction of a link."""
    return {name: value for name, value in metrics.items() if name.startswith(("link_bytes", "bytes["))}


def table_of(
    points: Sequence[Point],
    results: Mapping[tuple[str, str], Result],
    spreads: Mapping[str, Spread],
    native_rows: Path = NATIVE_ROWS,
) -> Table:
    """Errors of all runs, of calm ones, of those of every level of every factor, and of native runs."""
    found = list(compared(points, results))
    valid = [one for one in found if one.is_valid]
    calm = [one for one in valid if CALM in one.coordinates.items()]
    rows = [row_of("all", found), row_of("all that are valid", valid), row_of("valid and calm", calm)]
    for name in points[0].coordinates:
        levels = dict.fromkeys(point.coordinates[name] for point in points)
        rows += [
            row_of(f"{name}: {_named(level)}", [one for one in valid if one.coordinates[name] == level])
            for level in levels
        ]
    rows += [*over_seeds(valid, spreads), *native(native_rows)]
    times = ("latency", "95 %", "worst", "first token", "worst", "per token", "worst")
    return Table(
        _title(points, results, found),
        ("runs", "number", *times, "bytes of links"),
        tuple(_cells(row) for row in rows),
        chart=picture(valid) if valid else None,
        raw=_raw(found) if found else "",
    )


def _title(
    points: Sequence[Point], results: Mapping[tuple[str, str], Result], found: Sequence[Compared]
) -> str:
    refused = {
        digest
        for (digest, world), one in results.items()
        if world == "predicted" and one.outcome != "finished"
    }
    failed = {
        digest
        for (digest, world), one in results.items()
        if world == "emulated" and one.outcome != "finished"
    }
    total = len({point.digest for point in points})
    versions = len({one.code_version for one in found})
    mixed = f" They are of {versions} versions of the code." if versions > 1 else ""
    return (
        f"{len(found)} of {total} runs so far; {len(refused)} more have no plan, {len(failed - refused)} "
        f"failed when emulated.{mixed} Predicted / emulated - 1: median and 95 % of the amounts, and the "
        "worst. Rows but the first are of valid runs: those whose operations this machine could pace. "
        "Native: against runs of this host at its own speed (`./loom bench reality`)."
    )


def row_of(name: str, runs: Sequence[Compared]) -> Row:
    errors = {key: [one.errors[key] for one in runs if key in one.errors] for key in TIMES}
    return Row(name, errors, len(runs), sum(one.same_bytes for one in runs))


def over_seeds(runs: Sequence[Compared], spreads: Mapping[str, Spread]) -> list[Row]:
    """Runs that lose packets, by means: of each run's emulated seeds against its predicted ones. How many
    emulated latencies lie between the least and the most predicted one is in the row's name.
    """
    of_run: dict[Spread, list[Compared]] = defaultdict(list)
    for one in runs:
        if one.digest in spreads:
            of_run[spreads[one.digest]].append(one)
    if not of_run:
        return []
    inside = sum(
        min(spread.latencies_s) <= one.emulated_s <= max(spread.latencies_s)
        for spread, seeds in of_run.items()
        for one in seeds
    )
    total = sum(map(len, of_run.values()))
    errors = [
        fmean(spread.latencies_s) / fmean(one.emulated_s for one in seeds) - 1
        for spread, seeds in of_run.items()
    ]
    name = f"packets are lost: means over seeds ({inside} of {total} between the predicted extremes)"
    return [Row(name, {"latency_s": errors}, len(of_run))]


def native(file: Path) -> list[Row]:
    """Predictions of this host against its runs at native speed, by the number of devices."""
    if not file.is_file():
        return []
    by_devices: dict[int, list[dict[str, float]]] = defaultdict(list)
    for row in json.loads(file.read_text(encoding="utf-8")):
        by_devices[row["case"]["devices"]].append(_native_errors(row))
    return [
        Row(
            f"native: {devices} device{'s' * (devices > 1)}",
            {key: [one[key] for one in errors if key in one] for key in TIMES},
            len(errors),
        )
        for devices, errors in sorted(by_devices.items())
    ]


def _native_errors(row: Mapping[str, Any]) -> dict[str, float]:
    names = dict(zip(("total_s", "first_s", "later_s"), TIMES, strict=True))
    measured = {name: median(one[name] for one in row["measured"]) for name in names}
    return {
        names[name]: row["predicted"][name] / seconds - 1 for name, seconds in measured.items() if seconds > 0
    }


def picture(runs: Sequence[Compared]) -> Scatter:
    """Emulated latency against predicted, a mark per run, by method."""
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in runs:
        series[str(one.coordinates["method"])].append((one.predicted_s, one.emulated_s))
    return Scatter(
        title="Latency of valid runs: emulated against predicted",
        x_name="predicted",
        y_name="emulated",
        series={name: tuple(marks) for name, marks in series.items()},
        text=human_s,
        band=0.1,
    )


def _raw(found: Sequence[Compared]) -> str:
    """All compared runs as JSON, one a line."""
    rows = [
        json.dumps(
            {
                **one.coordinates,
                "predicted_s": one.predicted_s,
                "emulated_s": one.emulated_s,
                **{f"{name}_error": round(error, 6) for name, error in one.errors.items()},
                "same_bytes": one.same_bytes,
                "valid": one.is_valid,
            }
        )
        for one in found
    ]
    return "[\n" + ",\n".join(rows) + "\n]"


def _named(level: object) -> str:
    return human(level, "bit/s") if isinstance(level, float) else str(level)


def _cells(row: Row) -> tuple[str, ...]:
    latency, first, token = (row.errors.get(key, ()) for key in TIMES)
    return (
        row.name,
        str(row.number),
        _percent(latency, median),
        _percent(latency, percentile_95),
        _worst(latency),
        _percent(first, median),
        _worst(first),
        _percent(token, median),
        _worst(token),
        f"{row.same_bytes} equal" if row.same_bytes is not None and row.number else "",
    )


def _percent(errors: Sequence[float], of: Callable[[list[float]], float | None]) -> str:
    amount = of([abs(error) for error in errors]) if errors else None
    return "" if amount is None else f"{amount:.1%}"


def _worst(errors: Sequence[float]) -> str:
    return f"{max(errors, key=abs):+.1%}" if errors else ""
