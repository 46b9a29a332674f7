"""A quantity of a result: a metric by name, or its relation to a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from engine.domain.values import Value

Coordinate = Annotated[StrictBool | StrictInt | StrictFloat | StrictStr, Field(union_mode="left_to_right")]
Coordinates = dict[str, Coordinate]
"""Factor name → value of one of its levels (or its label)."""

FORMER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "total_s": "latency_s",
        "first_token_s": "ttft_s",
        "per_token_s": "tpot_s",
        "bytes": "link_bytes",
        "predicted_total_s": "predicted_latency_s",
        **{f"first_token_{of}_s": f"ttft_{of}_s" for of in ("p50", "p95", "p99")},
        **{f"per_token_{of}_s": f"tpot_{of}_s" for of in ("p50", "p95", "p99")},
    }
)
"""What experiments called figures before they had the names of reports: stored experiments and results are
read with the present ones."""


def present_name(name: Any) -> Any:
    return FORMER_NAMES.get(name, name) if isinstance(name, str) else name


def under_present_names(metrics: Any) -> Any:
    if not isinstance(metrics, Mapping):
        return metrics
    return {present_name(name): value for name, value in metrics.items()}


MetricName = Annotated[str, BeforeValidator(present_name)]
Metrics = Annotated[dict[str, float], BeforeValidator(under_present_names)]
"""Values by the names of their metrics."""

Relation = Literal["value", "ratio", "speedup", "reduction"]


class Quantity(Value):
    """A quantity that cells are compared by: `metric`; with `relative_to` in relation to the cell that has
    these coordinates instead.

    value      the metric as it is
    ratio      value / baseline
    speedup    baseline / value
    reduction  1 - value / baseline
    """

    metric: MetricName = "latency_s"
    relation: Relation = "value"
    relative_to: Coordinates = Field(
        default_factory=dict, description="Coordinates of the baseline that replace the cell's own."
    )
    count_invalid: bool = Field(
        default=False, description="Also runs whose times do not count as valid; else they are left out."
    )
