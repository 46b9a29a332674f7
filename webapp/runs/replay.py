"""Replay a run: the changes made live become its scenario, and fields of the request can be replaced."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec, ComputeModel
from engine.domain.model import QuantisedBits
from engine.domain.scenario import Scenario
from engine.domain.stored import read, read_report, upgrade_spec
from engine.domain.values import Count, Positive, Value
from engine.domain.workload import Workload
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest


class ReplayRequest(Value):
    """Fields that are given replace those of the run; another strategy starts from its own defaults."""

    name: str | None = Field(default=None, max_length=100)
    notes: str | None = None
    tags: tuple[str, ...] | None = None
    cluster_id: int | None = None
    cluster: ClusterSpec | None = None
    model: str | None = None
    weights: Literal["random"] | None = None
    weight_bits: QuantisedBits | None = None
    strategy: str | None = None
    params: dict[str, Any] | None = None
    workload: Workload | None = None
    scenario: Scenario | None = None
    compute_model: ComputeModel | None = None
    dilation: Positive | Literal["auto", "native"] | None = None
    silence_s: Positive | None = None
    failover: Literal["replan", "stop"] | None = None
    seed: Count | None = None


def replayed(run: Run, overrides: ReplayRequest) -> RunRequest:
    """A replay with another strategy, model or cluster gets the default name, unless it is given one: the
    run's own name may say what is not true any more. Raises `SpecError`.
    """
    stored = read(RunRequest, run.request, f"The request of {run}", upgrade_spec)
    request = stored.needed().model_dump(mode="json")
    if run.report is not None:
        report = read_report(run.report, f"The report of {run}").needed()
        request["scenario"] = report.scenario.model_dump(mode="json")
    changed = overrides.model_dump(mode="json", exclude_unset=True)
    other_strategy = changed.get("strategy", request["strategy"]) != request["strategy"]
    if other_strategy and "params" not in changed:
        request["params"] = {}
    if other_strategy or {"model", "weight_bits", "cluster", "cluster_id"} & changed.keys():
        request["name"] = ""
    if "cluster_id" in changed:
        request["cluster"] = None
    return RunRequest.parse(request | changed, "replay")
