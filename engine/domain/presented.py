"""What an experiment shows: figures, tables, and the published values beside its own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from engine.domain.quantity import Coordinates, Quantity, present_name
from engine.domain.values import Value
from engine.domain.world import World

ExperimentName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,60}$")]


class Presented(Value):
    """What figures and tables share. `worlds` and `where` choose rows; empty means all."""

    name: ExperimentName
    title: str = ""
    worlds: tuple[World, ...] = ()
    where: tuple[str, ...] = ()


class Figure(Quantity, Presented):
    """A plot of `metric` (or of its relation to a baseline).

    lines, bars   x: a factor; y: the metric; one line or group of bars per level of `series`
    boxes         as bars, with the quartiles of the repeats in place of their mean
    heatmap       x and `series`: two factors; colour: the metric
    scatter       x: another metric; y: the metric; one colour per level of `series`

    `facet` makes one panel per level of a factor. `world` may stand for a factor anywhere. What no axis shows
    must have one level, or be fixed by `where`.
    """

    kind: Literal["lines", "bars", "boxes", "heatmap", "scatter"] = "lines"
    x: str
    series: str = ""
    facet: str = ""
    log_x: bool = False
    log_y: bool = False
    errors: bool = Field(default=True, description="95 % intervals over seeds, where there are several.")
    published: bool = Field(default=True, description="A paper's values as marks of their own.")
    caption: str = ""

    @model_validator(mode="before")
    @classmethod
    def _present_metric_on_x(cls, data: Any) -> Any:
        is_metric = isinstance(data, dict) and data.get("kind") == "scatter" and "x" in data
        return {**data, "x": present_name(data["x"])} if is_metric else data


Statistic = Literal["mean", "median", "min", "max", "std", "interval"]


class Table(Quantity, Presented):
    """A pivot table: levels of the factors in `rows` × levels of those in `columns`; `world` is one, too, and
    stands below `columns` where there are several worlds and none of them has it. `interval` is the mean
    with its 95 % interval.
    """

    rows: tuple[str, ...] = Field(min_length=1)
    columns: tuple[str, ...] = ()
    statistic: Statistic = "interval"
    best: bool = Field(default=True, description="Mark the best of each row, in each world.")


class Published(Quantity):
    """A value of a paper: a number, a range, or how a run ended. `coordinates` names levels of factors.

    `unit` may be any known multiple of the metric's ("ms" for s, "GB" for B, "%" for a fraction, "x" for a
    ratio). `bound` says whether the paper gives the value itself, roughly, or a limit of it. `where` is the
    place in the paper; `id` the row in the file of published figures.
    """

    id: str = ""
    coordinates: Coordinates = Field(default_factory=dict)
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    outcome: str = ""
    bound: Literal["equal", "about", "at_most", "at_least"] = "equal"
    where: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _one_form(self) -> Published:
        if (self.low is None) != (self.high is None):
            raise ValueError("a range needs low and high")
        if sum((self.value is not None, self.low is not None, bool(self.outcome))) != 1:
            raise ValueError("give one of value, low with high, or outcome")
        return self
