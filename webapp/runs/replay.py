"""Replay a run: the changes made live become its scenario, and fields of the request can be replaced."""

from __future__ import annotations

from typing import Any

from engine.domain.stored import read, read_report, upgrade_spec
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest

OTHER_RUN = {"model", "weight_bits", "activation_bits", "draft_model", "cluster", "cluster_id"}
"""Fields with which a replay is another run, whose name does not say what it is."""


def without_defaults(schema: dict[str, Any]) -> None:
    """Let a schema tell no defaults: what a replay leaves out is as in its run."""
    for field in schema["properties"].values():
        field.pop("default", None)


class ReplayRequest(RunRequest, json_schema_extra=without_defaults):
    """Fields that are given replace those of the run; another strategy starts from its own defaults."""

    model: str = ""
    strategy: str = ""


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
    if other_strategy or OTHER_RUN & changed.keys():
        request["name"] = ""
    if "cluster_id" in changed:
        request["cluster"] = None
    return RunRequest.parse(request | changed, "replay")
