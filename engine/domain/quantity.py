"""A quantity of a result: a metric by name, or its relation to a baseline."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from engine.domain.values import Value

Coordinate = Annotated[StrictBool | StrictInt | StrictFloat | StrictStr, Field(union_mode="left_to_right")]
Coordinates = dict[str, Coordinate]
"""Factor name → value of one of its levels (or its label)."""

Relation = Literal["value", "ratio", "speedup", "reduction"]


class Quantity(Value):
    """`metric` at a cell; with `relative_to` in relation to the cell that has these coordinates instead.

    value      the metric as it is
    ratio      value / baseline
    speedup    baseline / value
    reduction  1 - value / baseline
    """

    metric: str = "total_s"
    relation: Relation = "value"
    relative_to: Coordinates = Field(
        default_factory=dict, description="Coordinates of the baseline that replace the cell's own."
    )
    count_invalid: bool = Field(
        default=False, description="Also runs whose times do not count as valid; else they are left out."
    )
