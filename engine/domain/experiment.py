"""Experiment: many runs that answer one question, as a frozen value that goes to TOML and JSON and back.

A run is one point of it: the base with the settings of one level of every factor, and one seed. What is
plotted and tabulated, what a paper published and claims, and what was assumed belong to the same value.

This module checks what can be checked without clusters, models or strategies; `engine/experiments/` resolves
names, expands the points, carries them out and evaluates the results.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from pydantic import Field, field_validator, model_validator

from engine.domain.claim import Claim
from engine.domain.factor import Factor
from engine.domain.presented import ExperimentName, Figure, Published, Table
from engine.domain.quantity import Coordinates
from engine.domain.spec import RunSpec
from engine.domain.values import Count, Value, numbers_in
from engine.domain.world import World

MAX_POINTS = 10_000
"""Most points of one experiment, counted by arithmetic before any is built, and before `where`
removes some.
"""

MAX_INTEGER = 2**63 - 1
"""The largest whole number of TOML, and of a column of a database."""

RUN_KEYS = (
    *(name for name in RunSpec.model_fields if name not in ("method", "seed", "draft_weights")),
    *("weight_bits", "activation_bits", "draft_model", "likely_acceptance"),
)
"""What `base` may have: the fields of `RunSpec` without the seed, which `seeds` gives, and where its strategy
is from, which its name tells; `weight_bits`, 8 or 4, to which the model's matrices are rounded;
`activation_bits`, 8 where products are of whole numbers; `draft_model`, the name of its draft model, and the
`likely_acceptance` of what that drafts.
"""


AMONG_WORLDS = 'leave it out, and give "nodes" among the worlds'


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
    worlds: tuple[World, ...] = Field(default=("predicted",), min_length=1)
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    assumptions: tuple[str, ...] = ()

    def factor(self, name: str) -> Factor | None:
        return next((factor for factor in self.factors if factor.name == name), None)

    def title_of(self, name: str) -> str:
        """What a coordinate is called: a factor's label, else it is the world's."""
        factor = self.factor(name)
        return factor.label if factor else "World"

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

    @model_validator(mode="before")
    @classmethod
    def _numbers_of_json(cls, data: Any) -> Any:
        """Check the numbers in factors and in `base`, whose values are free, so that pydantic does not look
        at them.
        """
        for path, number in numbers_in(data):
            if isinstance(number, int):
                if abs(number) > MAX_INTEGER:
                    raise ValueError(f"{path}: the limit of whole numbers is {MAX_INTEGER:,}: give less")
            elif not math.isfinite(number):
                raise ValueError(f"{path}: {number} is no finite number: leave it out, or give a number")
        return data

    @field_validator("base")
    @classmethod
    def _known_keys(cls, base: dict[str, Any]) -> dict[str, Any]:
        for key in base:
            if key == "seed":
                raise ValueError("seed: an experiment has seeds beside base")
            if key not in (*RUN_KEYS, "schema"):
                raise ValueError(f"{key}: unknown key: a run has {', '.join(RUN_KEYS)}")
        if base.get("dilation") == "nodes":
            raise ValueError(f"dilation: is nodes: {AMONG_WORLDS}")
        return base

    @field_validator("factors")
    @classmethod
    def _boards_are_a_world(cls, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
        for factor in factors:
            for index, level in enumerate(factor.values):
                if (dict.fromkeys(factor.paths, level.value) | level.set).get("dilation") == "nodes":
                    raise ValueError(f"{factor.name}: values[{index}]: dilation is nodes: {AMONG_WORLDS}")
        return factors

    @field_validator("worlds")
    @classmethod
    def _emulated_at_native_speed(cls, worlds: tuple[World, ...]) -> tuple[World, ...]:
        if "native" in worlds:
            raise ValueError(
                'native: points are emulated, at native speed where base or a factor has dilation = "native"'
            )
        return worlds

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
                f"{factors} × {len(self.seeds):,} seeds are {self.num_candidates:,} points, and the limit is "
                f"{MAX_POINTS:,}: leave out values, or zip factors"
            )
        return self

    def _known(self, name: str, place: str) -> Factor:
        factor = self.factor(name)
        if factor is None:
            known = ", ".join(factor.name for factor in self.factors) or "none"
            raise ValueError(f"{place}: there is no factor {name}: the factors are {known}")
        return factor
