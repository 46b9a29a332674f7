"""Experiment: many runs that answer one question, as a frozen value that goes to TOML and JSON and back.

A run is one point of it: the base with the settings of one level of every factor, and one seed. What is
plotted and tabulated, what a paper published and claims, and what was assumed belong to the same value.

This module checks what can be checked without clusters, models or strategies; `engine/experiments/` resolves
names, expands the points, carries them out and evaluates the results.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from engine.domain.claim import Claim
from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.values import Count, Value

MAX_POINTS = 10_000
"""Points of one experiment, counted by arithmetic before any is built, and before `where` removes some."""

World = Literal["simulated", "calculated", "emulated"]
"""simulated: predicted on shapes. calculated: predicted with real tensors in one process, so that what
depends on data is real too. emulated: run on emulated devices and links (needs root).
"""

ExperimentName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,60}$")]
FactorName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
RESERVED = ("world", "seed", "and", "or", "not", "in", "true", "false")
"""Names that no factor may have: coordinates that every row has, and words of conditions."""

RUN_KEYS = (
    "name",
    "cluster",
    "model",
    "weights",
    "workload",
    "strategy",
    "params",
    "scenario",
    "compute_model",
    "profile",
    "dilation",
    "silence_s",
    "failover",
)
"""What `base` may have: the fields of `RunSpec` without the seed, which `seeds` gives."""


class Level(Value):
    """One value of a factor. `value` goes to the factor's paths, and every path in `set` gets its value.

    The coordinate is `value` where it is a number, a text or a boolean, else `label`. `label` is what figures
    and tables show. In a file a level may be a plain value.
    """

    label: str = ""
    value: Any = None
    set: dict[str, Any] = Field(default_factory=dict)

    @property
    def coordinate(self) -> Coordinate:
        return self.value if isinstance(self.value, str | int | float | bool) else self.label

    @property
    def title(self) -> str:
        return self.label or str(self.coordinate)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        is_level = isinstance(data, Level | dict) and (
            not isinstance(data, dict) or (bool(data) and data.keys() <= {"label", "value", "set"})
        )
        return data if is_level else {"value": data}

    @model_validator(mode="after")
    def _has_a_coordinate(self) -> Level:
        if self.value is None and not self.set:
            raise ValueError("a level has neither value nor set: give one of them")
        if self.coordinate == "":
            raise ValueError("a level that is no number, text or boolean needs a label")
        return self


class Factor(Value):
    """What is varied: `path` or `paths` into the run name what each level's value replaces there.

    `unit` is that of the values, in SI as everywhere ("bit/s", "s", "B", "" for names and counts).
    """

    name: FactorName
    title: str = ""
    unit: str = ""
    paths: tuple[str, ...] = ()
    values: tuple[Level, ...] = Field(min_length=1)

    @property
    def label(self) -> str:
        """How axes and tables call it, without its unit."""
        return self.title or self.name.replace("_", " ")

    def level(self, coordinate: Coordinate) -> Level | None:
        """The level with this coordinate or, if none has it, with this label."""
        for level in self.values:
            if same_coordinate(level.coordinate, coordinate):
                return level
        return next((level for level in self.values if level.label and level.label == coordinate), None)

    @model_validator(mode="before")
    @classmethod
    def _one_path(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "path" not in data:
            return data
        if "paths" in data:
            raise ValueError("has path and paths: give one of them")
        return {**{key: item for key, item in data.items() if key != "path"}, "paths": [data["path"]]}

    @model_validator(mode="after")
    def _consistent(self) -> Factor:
        if self.name in RESERVED:
            raise ValueError(f"a factor cannot be called {self.name}: the word is taken")
        if not self.paths and not any(level.set for level in self.values):
            raise ValueError(f"{self.name} changes nothing: give a path, or values with set")
        seen: set[tuple[bool, Coordinate]] = set()
        for index, level in enumerate(self.values):
            missing = [path for path in self.paths if level.value is None and path not in level.set]
            if missing:
                raise ValueError(f"values[{index}] has no value for the path {missing[0]}")
            key = (isinstance(level.coordinate, bool), level.coordinate)
            if key in seen:
                raise ValueError(f"values[{index}] has the coordinate {level.coordinate!r} of an earlier one")
            seen.add(key)
        return self


class Presented(Value):
    """What figures and tables share. `worlds` and `where` choose rows; empty means all."""

    name: ExperimentName
    title: str = ""
    worlds: tuple[World, ...] = ()
    where: tuple[str, ...] = ()


class Figure(Quantity, Presented):
    """A plot of `metric` (or of its relation to a baseline).

    lines, bars   x: a factor; y: the metric; one line or group of bars per level of `series`
    heatmap       x and `series`: two factors; colour: the metric
    scatter       x: another metric; y: the metric; one colour per level of `series`

    `facet` makes one panel per level of a factor. `world` may stand for a factor anywhere. What no axis shows
    must have one level, or be fixed by `where`.
    """

    kind: Literal["lines", "bars", "heatmap", "scatter"] = "lines"
    x: str
    series: str = ""
    facet: str = ""
    log_x: bool = False
    log_y: bool = False
    errors: bool = Field(default=True, description="95 % intervals over seeds, where there are several.")
    published: bool = Field(default=True, description="A paper's values as marks of their own.")
    caption: str = ""


Statistic = Literal["mean", "median", "min", "max", "std", "interval"]


class Table(Quantity, Presented):
    """A pivot table: levels of the factors in `rows` × levels of those in `columns`; `world` is one, too."""

    rows: tuple[str, ...] = Field(min_length=1)
    columns: tuple[str, ...] = ()
    statistic: Statistic = "mean"
    best: bool = Field(default=True, description="Mark the best of each row.")


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


class Experiment(Value):
    """Many runs that answer one question.

    `base` is a run as `--spec FILE` has it, where cluster, model and scenario may be names, and strategy and
    params may be left to factors. The points are the full grid of all factors (those in one group of `zipped`
    go side by side) that meet every condition in `where`, and the explicit `points`; each with every seed,
    and in each of `worlds`. `grid = false` leaves only the explicit points.
    """

    name: ExperimentName
    title: str = ""
    description: str = ""
    paper: str = ""
    base: dict[str, Any] = Field(default_factory=dict)
    factors: tuple[Factor, ...] = ()
    zipped: tuple[tuple[str, ...], ...] = ()
    where: tuple[str, ...] = ()
    grid: bool = True
    points: tuple[Coordinates, ...] = ()
    seeds: tuple[Count, ...] = Field(default=(0,), min_length=1)
    worlds: tuple[World, ...] = Field(default=("simulated",), min_length=1)
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    assumptions: tuple[str, ...] = ()

    def factor(self, name: str) -> Factor | None:
        return next((factor for factor in self.factors if factor.name == name), None)

    @property
    def groups(self) -> tuple[tuple[Factor, ...], ...]:
        """The factors in their order; those that are zipped stand together, at the first one's place."""
        zipped = {name: group for group in self.zipped for name in group}
        made: list[tuple[Factor, ...]] = []
        for factor in self.factors:
            names = zipped.get(factor.name, (factor.name,))
            if not any(factor in group for group in made):
                made.append(tuple(other for other in self.factors if other.name in names))
        return tuple(made)

    @property
    def num_candidates(self) -> int:
        """Points with all seeds before `where` removes some; worlds are not counted."""
        grid = math.prod(len(group[0].values) for group in self.groups) if self.grid else 0
        return (grid + len(self.points)) * len(self.seeds)

    @field_validator("base")
    @classmethod
    def _known_keys(cls, base: dict[str, Any]) -> dict[str, Any]:
        for key in base:
            if key == "seed":
                raise ValueError("seed: an experiment has seeds beside base")
            if key not in (*RUN_KEYS, "schema"):
                raise ValueError(f"{key}: unknown key: a run has {', '.join(RUN_KEYS)}")
        return base

    @model_validator(mode="after")
    def _unique_names(self) -> Experiment:
        for what, names in (
            ("factors", [factor.name for factor in self.factors]),
            ("figures", [figure.name for figure in self.figures]),
            ("tables", [table.name for table in self.tables]),
            ("claims", [claim.name for claim in self.claims]),
            ("seeds", list(self.seeds)),
            ("worlds", list(self.worlds)),
        ):
            name, times = Counter(names).most_common(1)[0] if names else ("", 0)
            if times > 1:
                raise ValueError(f"{what}: {name} is there twice: each must differ")
        return self

    @model_validator(mode="after")
    def _zipped_alike(self) -> Experiment:
        seen: set[str] = set()
        for index, group in enumerate(self.zipped):
            for name in group:
                if name in seen:
                    raise ValueError(f"zipped[{index}]: {name} is in two groups or twice in one")
                seen.add(name)
            found = [self._known(name, f"zipped[{index}]") for name in group]
            if len({len(factor.values) for factor in found}) > 1:
                counts = ", ".join(f"{factor.name} has {len(factor.values)}" for factor in found)
                raise ValueError(
                    f"zipped[{index}]: factors go side by side, so need as many values: {counts}"
                )
        return self

    @model_validator(mode="after")
    def _coordinates_of_factors(self) -> Experiment:
        for index, point in enumerate(self.points):
            for name in point:
                self._known(name, f"points[{index}]")
            missing = [factor.name for factor in self.factors if factor.name not in point]
            if missing:
                raise ValueError(
                    f"points[{index}]: {missing[0]} is missing: a point has a value of every factor"
                )
        for index, value in enumerate(self.published):
            for name in (*value.coordinates, *value.relative_to):
                if name != "world":
                    self._known(name, f"published[{index}]")
        if not self.grid and not self.points:
            raise ValueError("grid is false and there are no points: nothing would run")
        return self

    @model_validator(mode="after")
    def _not_too_many(self) -> Experiment:
        if self.num_candidates > MAX_POINTS:
            factors = " × ".join(f"{len(group[0].values)} {group[0].name}" for group in self.groups)
            raise ValueError(
                f"{factors} × {len(self.seeds)} seeds are {self.num_candidates:,} points, and the limit is "
                f"{MAX_POINTS:,}: leave out values, or zip factors"
            )
        return self

    def _known(self, name: str, place: str) -> Factor:
        factor = self.factor(name)
        if factor is None:
            known = ", ".join(factor.name for factor in self.factors) or "none"
            raise ValueError(f"{place}: there is no factor {name}: the factors are {known}")
        return factor


def same_coordinate(one: Coordinate, other: Coordinate) -> bool:
    """Equal, and both or neither booleans or texts: in Python `1 == True`; 1 and 1.0 are the same."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
