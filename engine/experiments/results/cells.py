"""Cells: what several seeds gave at one place of the grid, in one world, as a mean with a 95 % interval."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.factor import same_coordinate
from engine.domain.numbers_as_text import shown
from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.values import Value
from engine.experiments.design.conditions import holds
from engine.experiments.results.metrics import metric
from engine.experiments.results.rows import Row
from engine.reports.intervals import interval

Place = tuple[tuple[str, bool, Coordinate], ...]

RESOLUTION_FRAC = 1e-5
"""How near two values are that are no different: six digits tell those that are farther apart."""


class Repeat(Value):
    """The value of one seed."""

    seed: int
    value: float
    digest: str


class Cell(Value):
    """One place and world. `coordinates` has the world, too. Without a value `mean` is None and `problem`
    says why. `low` and `high` bound the 95 % confidence interval of the mean; None with fewer than two
    values. `invalid` counts emulated runs whose times do not count as valid, and `left_out` has their values,
    which are in neither `repeats` nor the mean unless the quantity asks for them. `computations` says by seed
    what its runs compute, as far as that is known, and `alone` on which one device all of them do.
    """

    coordinates: Coordinates
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    repeats: tuple[Repeat, ...] = ()
    digests: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    problem: str = ""
    stale: bool = False
    invalid: int = 0
    left_out: tuple[Repeat, ...] = ()
    computations: dict[int, str] = Field(default_factory=dict)
    alone: str = ""

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval, or the mean twice where there is none; for cells with a mean."""
        assert self.mean is not None
        return (
            self.mean if self.low is None else self.low,
            self.mean if self.high is None else self.high,
        )


def cells(
    experiment: Experiment,
    rows: Sequence[Row],
    quantity: Quantity,
    where: Sequence[str] = (),
    worlds: Sequence[str] = (),
) -> tuple[Cell, ...]:
    """The cells of `rows` that meet the conditions in `where`, in `worlds` (empty: in all), in their order.

    A relation is taken seed by seed: a run relates to the baseline's run with its own seed, or where that has
    not this seed, to the baseline's mean.
    """
    by_place: dict[Place, list[Row]] = {}
    for row in rows:
        by_place.setdefault(place_of(row.place), []).append(row)
    base = named(experiment, quantity.relative_to)
    found = []
    for group in by_place.values():
        place = group[0].place
        if worlds and place["world"] not in worlds:
            continue
        if all(holds(condition, place) for condition in where):
            found.append(_cell(group, by_place.get(place_of({**place, **base}), []), quantity))
    return tuple(found)


def place_of(coordinates: Mapping[str, Coordinate]) -> Place:
    """What two rows of one cell have in common; 1 and True differ."""
    return tuple((name, isinstance(value, bool), value) for name, value in coordinates.items())


def named(experiment: Experiment, coordinates: Mapping[str, Coordinate]) -> Coordinates:
    """`coordinates` with labels replaced by the values of their levels."""
    found: Coordinates = {}
    for name, value in coordinates.items():
        factor = experiment.factor(name)
        level = factor.level(value) if factor else None
        found[name] = level.coordinate if level else value
    return found


def label_of(experiment: Experiment, name: str, value: Coordinate) -> str:
    """What figures and tables show for a coordinate: the label of its level if it has one, a number with the
    factor's unit ("10 Mbit/s"), the name of a world.
    """
    factor = experiment.factor(name)
    level = factor.level(value) if factor else None
    if level is not None and level.label:
        return level.label
    if isinstance(value, bool | str):
        return str(value)
    if factor is not None and factor.unit:
        return shown(value, factor.unit, digits=6)
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else str(value)


def place_text(experiment: Experiment, coordinates: Mapping[str, Coordinate]) -> str:
    """`strategy voltage, rate 10 Mbit/s`; the world where there are several."""
    parts = []
    for name, value in coordinates.items():
        factor = experiment.factor(name)
        if name != "world" or len(experiment.worlds) > 1:
            parts.append(f"{factor.label if factor else name} {label_of(experiment, name, value)}")
    return ", ".join(parts) or "everywhere"


def chosen(
    experiment: Experiment, found: Sequence[Cell], at: Mapping[str, Coordinate | tuple[Coordinate, ...]]
) -> list[Cell]:
    """The cells at one of the given values of every factor that `at` names."""
    wanted = {
        name: [
            named(experiment, {name: one})[name] for one in (value if isinstance(value, tuple) else (value,))
        ]
        for name, value in at.items()
    }
    return [
        cell
        for cell in found
        if all(
            any(same_coordinate(cell.coordinates[name], one) for one in values)
            for name, values in wanted.items()
            if name in cell.coordinates
        )
    ]


def sides(
    experiment: Experiment, found: Sequence[Cell], a: Coordinates, b: Coordinates, along: str = ""
) -> list[tuple[Coordinates, list[Cell], list[Cell]]]:
    """Cells at `a` and at `b` for every place of the other factors (without `along`). A factor that only one
    side names is the same on both.
    """
    one, other = named(experiment, {**b, **a}), named(experiment, {**a, **b})
    by_rest: dict[Place, tuple[Coordinates, list[Cell], list[Cell]]] = {}
    for cell in found:
        rest = {name: at for name, at in cell.coordinates.items() if name not in one and name != along}
        group = by_rest.setdefault(place_of(rest), (rest, [], []))
        for side, cells_there in ((one, group[1]), (other, group[2])):
            if all(same_coordinate(cell.coordinates[name], value) for name, value in side.items()):
                cells_there.append(cell)
    return list(by_rest.values())


def overlap(one: Cell, other: Cell) -> bool:
    """Whether the two cannot be told apart: their intervals, or values, have a point in common but for
    RESOLUTION_FRAC.
    """
    (low, high), (other_low, other_high) = one.bounds, other.bounds
    gap = max(low - other_high, other_low - high)
    return gap <= RESOLUTION_FRAC * max(abs(low), abs(other_low))


def is_same(one: Cell, other: Cell) -> bool:
    """Whether the two are one computation by two names: wherever both have a seed."""
    shared = one.computations.keys() & other.computations.keys()
    return bool(shared) and all(one.computations[seed] == other.computations[seed] for seed in shared)


def _cell(group: Sequence[Row], baseline: Sequence[Row], quantity: Quantity) -> Cell:
    base = _by_seed(baseline, quantity) if quantity.relation != "value" else {}
    repeats: list[Repeat] = []
    left_out: list[Repeat] = []
    for row in group:
        own = row.metrics.get(quantity.metric) if row.finished else None
        value = related(own, _baseline_of(row.seed, base), quantity) if own is not None else None
        if value is not None:
            kept = repeats if counts(row, quantity) else left_out
            kept.append(Repeat(seed=row.seed, value=value, digest=row.digest))
    values = [repeat.value for repeat in repeats]
    low, high = interval(values) or (None, None)
    return Cell(
        coordinates=group[0].place,
        mean=statistics.fmean(values) if values else None,
        low=low,
        high=high,
        repeats=tuple(repeats),
        digests=tuple(row.digest for row in group if row.digest),
        outcomes=tuple(row.outcome for row in group),
        problem="" if values else _problem(group, bool(base), len(left_out), quantity),
        stale=any(row.stale for row in group),
        invalid=sum(not row.valid for row in group),
        left_out=tuple(left_out),
        computations={row.seed: row.computation for row in group if row.computation},
        alone=group[0].alone if len({row.alone for row in group}) == 1 else "",
    )


def counts(row: Row, quantity: Quantity) -> bool:
    """Whether the row's value enters means: it is valid, or the quantity asks for all."""
    return row.valid or quantity.count_invalid or metric(quantity.metric).trust


def related(value: float, base: float | None, quantity: Quantity) -> float | None:
    """`value` in the quantity's relation to `base`; None where that is undefined."""
    if quantity.relation == "value":
        return value
    if base is None or base == 0 or (quantity.relation == "speedup" and value == 0):
        return None
    match quantity.relation:
        case "ratio":
            return value / base
        case "speedup":
            return base / value
        case "reduction":
            return 1 - value / base


def _by_seed(rows: Iterable[Row], quantity: Quantity) -> dict[int, float]:
    return {
        row.seed: row.metrics[quantity.metric]
        for row in rows
        if row.finished and quantity.metric in row.metrics and counts(row, quantity)
    }


def _baseline_of(seed: int, base: Mapping[int, float]) -> float | None:
    if not base:
        return None
    return base[seed] if seed in base else statistics.fmean(base.values())


def _problem(group: Sequence[Row], has_baseline: bool, num_left_out: int, quantity: Quantity) -> str:
    """Why a cell has no value, in one sentence."""
    if num_left_out:
        runs = "Its run does" if num_left_out == 1 else f"Its {num_left_out} runs do"
        return f"{runs} not count as valid."
    for row in group:
        if not row.finished:
            return row.sentence or row.outcome.replace("_", " ")
    if quantity.relation != "value" and not has_baseline:
        base = ", ".join(f"{name} = {value}" for name, value in quantity.relative_to.items())
        return f"The baseline ({base}) has no value here."
    return f"These runs have no {quantity.metric}."


def known_axis(experiment: Experiment, name: str, place: str) -> None:
    """Check that `name` is a factor or `world`; raises `SpecError`."""
    known = [*(factor.name for factor in experiment.factors), "world"]
    if name not in known:
        raise SpecError(f"{place}: there is no factor {name}: there are {', '.join(known)}.")
