"""Pivot tables: a statistic of a quantity in rows × columns of factors."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from engine.domain.experiment import Experiment
from engine.domain.presented import Table
from engine.domain.values import Value
from engine.experiments.results.cells import Cell, cells, known_axis, label_of
from engine.experiments.results.metrics import metric
from engine.experiments.results.rows import Row
from engine.experiments.results.units import better_of, title_of_quantity, unit_of_quantity
from engine.reports.intervals import interval

Headings = tuple[str, ...]

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {
        "mean": statistics.fmean,
        "interval": statistics.fmean,
        "median": statistics.median,
        "min": min,
        "max": max,
        "std": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,
    }
)


class TableCell(Value):
    """A cell of a pivot table.

    `value` is None where nothing finished; `problem` then says why. `low` and `high` are of the statistic
    `interval`. `number` of runs are in it, and `invalid` others have no valid times. `best` marks the best of
    its row among those of its world, and what is the same computation: by `computation`, "" if not known. A
    row of one computation has no best.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    number: int = 0
    invalid: int = 0
    best: bool = False
    problem: str = ""
    outcomes: tuple[str, ...] = ()
    stale: bool = False
    computation: str = ""


class TableRow(Value):
    headings: Headings
    cells: tuple[TableCell | None, ...]


class TableData(Value):
    """A table with everything that it shows; a cell is None where the experiment has no point. `heads` are
    the lines of its head: headings over the row titles, then one per column. `together` are the titles of
    factors that are neither in rows nor in columns and have several levels: a cell takes these together.
    `heading` is what a printed table is called: its title, or the question of the experiment.
    """

    name: str
    title: str
    heading: str
    quantity: str
    unit: str
    statistic: str
    better: str | None
    row_titles: Headings
    column_titles: Headings
    columns: tuple[Headings, ...]
    rows: tuple[TableRow, ...]
    together: Headings = ()

    @property
    def heads(self) -> tuple[Headings, ...]:
        """The lines above the table; the last has the row titles, too: "Method / Rate of the links"."""
        if not self.column_titles:
            return ((*self.row_titles, self.quantity),)
        *before, last = self.row_titles
        blank = ("",) * len(before)
        lines = [
            (*blank, title, *(column[depth] for column in self.columns))
            for depth, title in enumerate(self.column_titles)
        ]
        lines[-1] = (*before, f"{last} / {self.column_titles[-1]}", *lines[-1][len(self.row_titles) :])
        return tuple(lines)


def table_data(experiment: Experiment, table: Table, rows: Sequence[Row]) -> TableData:
    """The cells of a pivot table. Factors that are neither in rows nor in columns are taken together, worlds
    never: a prediction and a measurement have no mean. Raises `SpecError` for an unknown factor.
    """
    check_table(experiment, table)
    found = cells(experiment, rows, table, table.where, table.worlds)
    column_names = table.columns
    if (
        "world" not in (*table.rows, *table.columns)
        and len({cell.coordinates["world"] for cell in found}) > 1
    ):
        column_names = (*table.columns, "world")
    slots: dict[tuple[Headings, Headings], list[Cell]] = {}
    worlds: dict[tuple[Headings, Headings], object] = {}
    for cell in found:
        key = _headings(experiment, table.rows, cell), _headings(experiment, column_names, cell)
        slots.setdefault(key, []).append(cell)
        worlds[key] = cell.coordinates["world"]
    columns = _ordered(experiment, column_names, {column for _, column in slots})
    better = better_of(table) if table.best else None
    return TableData(
        name=table.name,
        title=table.title or table.name.replace("-", " "),
        heading=table.title or experiment.title or table.name.replace("-", " "),
        quantity=title_of_quantity(table),
        unit=unit_of_quantity(table),
        statistic=table.statistic,
        better=better,
        row_titles=tuple(map(experiment.title_of, table.rows)),
        column_titles=tuple(map(experiment.title_of, column_names)),
        columns=columns,
        rows=tuple(
            TableRow(
                headings=headings,
                cells=_marked(
                    [_cell(slots.get((headings, column), []), table) for column in columns],
                    [worlds.get((headings, column)) for column in columns],
                    better,
                ),
            )
            for headings in _ordered(experiment, table.rows, {row for row, _ in slots})
        ),
        together=tuple(
            factor.label
            for factor in experiment.factors
            if factor.name not in (*table.rows, *column_names)
            and len({cell.coordinates[factor.name] for cell in found}) > 1
        ),
    )


def tables_of(experiment: Experiment) -> tuple[Table, ...]:
    """The tables of an experiment. Of one without any the numbers of its figures: x × series, so that the
    best of a row is the best series at one place.
    """
    return experiment.tables or tuple(
        Table(
            name=figure.name,
            title=figure.title,
            metric=figure.metric,
            relation=figure.relation,
            relative_to=figure.relative_to,
            count_invalid=figure.count_invalid,
            rows=tuple(name for name in (figure.facet, figure.x) if name),
            columns=(figure.series,) if figure.series else (),
            where=figure.where,
            worlds=figure.worlds,
        )
        for figure in experiment.figures
        if figure.kind != "scatter"
    )


def check_table(experiment: Experiment, table: Table) -> None:
    """Check that the experiment has the metric and the factors that a table names; raises `SpecError`."""
    metric(table.metric)
    for name in (*table.rows, *table.columns):
        known_axis(experiment, name, f"table {table.name}")


def _headings(experiment: Experiment, names: Sequence[str], cell: Cell) -> Headings:
    return tuple(label_of(experiment, name, cell.coordinates[name]) for name in names)


def _ordered(experiment: Experiment, names: Sequence[str], found: set[Headings]) -> tuple[Headings, ...]:
    """`found` in the order in which the experiment has the levels."""
    order = []
    for name in names:
        factor = experiment.factor(name)
        labels = (
            [label_of(experiment, name, level.coordinate) for level in factor.values]
            if factor
            else list(experiment.worlds)
        )
        order.append({label: index for index, label in enumerate(labels)})
    return tuple(
        sorted(
            found,
            key=lambda headings: [
                (places.get(label, len(places)), label) for places, label in zip(order, headings, strict=True)
            ],
        )
    )


def _cell(group: Sequence[Cell], table: Table) -> TableCell | None:
    if not group:
        return None
    values = [repeat.value for cell in group for repeat in cell.repeats]
    low, high = (interval(values) or (None, None)) if table.statistic == "interval" else (None, None)
    return TableCell(
        value=STATISTICS[table.statistic](values) if values else None,
        low=low,
        high=high,
        number=len(values),
        invalid=sum(len(cell.left_out) for cell in group),
        problem="" if values else group[0].problem,
        outcomes=tuple(outcome for cell in group for outcome in cell.outcomes),
        stale=any(cell.stale for cell in group),
        computation=" ".join(one for cell in group for one in cell.computations.values()),
    )


def _marked(
    row: Sequence[TableCell | None], worlds: Sequence[object], better: str | None
) -> tuple[TableCell | None, ...]:
    """The row with the best value of each world marked, where there are several computations, and all that
    read like it: of three numbers that are all shown as 555 ms, one alone would look wrong in bold.
    """
    by_world: dict[object, list[tuple[float, str]]] = {}
    for cell, world in zip(row, worlds, strict=True):
        if cell is not None and cell.value is not None:
            by_world.setdefault(world, []).append((cell.value, cell.computation))
    tops = {
        world: min(values) if better == "lower" else max(values)
        for world, values in by_world.items()
        if better is not None and len(values) > 1 and _are_several(values)
    }
    return tuple(
        cell.model_copy(update={"best": True}) if cell and _is_best(cell, tops.get(world)) else cell
        for cell, world in zip(row, worlds, strict=True)
    )


def _are_several(values: Sequence[tuple[float, str]]) -> bool:
    """Whether not all of them are known to be one computation."""
    computed = {computed for _, computed in values}
    return len(computed) > 1 or "" in computed


def _is_best(cell: TableCell, top: tuple[float, str] | None) -> bool:
    if top is None:
        return False
    return _reads_like(cell.value, top[0]) or bool(cell.computation and cell.computation == top[1])


def _reads_like(value: float | None, other: float | None) -> bool:
    return value is not None and other is not None and f"{value:.3g}" == f"{other:.3g}"
