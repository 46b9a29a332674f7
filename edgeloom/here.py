"""Runs, experiments and comparisons in this process, without a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import edgeloom.own_packages  # noqa: F401
import topologies
from edgeloom.report import Report, shown
from emulator.cli.main import ENVIRONMENT
from emulator.session.client import emulate
from engine.cli.experiment_command import campaign_of
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.events import Event, StateChanged
from engine.domain.experiment import Experiment
from engine.domain.extras import naming_extras, need
from engine.domain.model import ModelSpec, with_draft
from engine.domain.network import LoopbackNetwork
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.workload import Workload
from engine.experiments.design.shipped_files import load
from engine.experiments.execution.campaign import carry_out_all
from engine.experiments.results.frame import frame
from engine.models.catalogue import resolve, with_weights
from engine.program.strategy import Strategy
from engine.reports.compare import Comparison
from engine.reports.compare import compare as compare_reports
from engine.runs.execute import execute
from engine.runs.predict import predict as predict_spec
from engine.runs.uncertainty import with_uncertainty
from engine.strategies.registry import add, named, origin_of, source_of

if TYPE_CHECKING:
    import pandas

__all__ = ["compare", "experiment", "predict", "run", "spec"]

OF_RUN = ("compute_model", "dilation", "failover", "name", "scenario", "seed", "silence_s")
"""What `spec` takes besides: these are fields of the run, all others of its workload."""


def spec(
    cluster: str | ClusterSpec,
    model: str | ModelSpec,
    method: str | Strategy | type[Strategy],
    params: Mapping[str, Any] | None = None,
    weights: str | None = None,
    draft_model: str | None = None,
    draft_weights: str | None = None,
    likely_acceptance: float | None = None,
    **more: Any,
) -> RunSpec:
    """A run, complete: `cluster` and `model` are names, files or values, `method` a name, FILE.py:CLASS, a
    class or an object. `weights` names those that the model is run with, a folder or `random` (which has none
    of its text), if not its own; a `ModelSpec` has none of its own: they are random unless a folder is named.
    `draft_model`, a name or a folder, is what a method that drafts lets guess tokens, with `draft_weights`;
    predictions take a guess to be right with the probability `likely_acceptance` (0.7).
    `more` are fields of the workload (`prompt`, `prompt_tokens`, `new_tokens`, `requests`, …) and of the run
    (`seed`, `scenario`, `dilation`, …). Raises `SpecError`.
    """
    method = method() if isinstance(method, type) else method
    chosen = named(method) if isinstance(method, str) else add(method)
    given = dict(params) if params is not None else {} if isinstance(method, str) else method.given
    chosen.Params.parse(given, f"parameters of {chosen.name}")
    described, stored = resolve(model, weights) if isinstance(model, str) else with_weights(model, weights)
    if draft_model is None and draft_weights is not None:
        raise SpecError(f"draft_weights {draft_weights}: there is no draft model: name it as draft_model.")
    draft, stored_draft = resolve(draft_model, draft_weights) if draft_model else (None, WeightsRef())
    described = with_draft(described, draft, likely_acceptance)
    sizes = {key: value for key, value in more.items() if key not in OF_RUN}
    if described.reads_text and not sizes.keys() & {"prompt", "prompt_tokens", "trace"}:
        sizes["prompt_tokens"] = 16
    if not described.causal:
        sizes.setdefault("new_tokens", 0)
    made: RunSpec = RunSpec.parse(
        {
            **{key: value for key, value in more.items() if key in OF_RUN},
            "cluster": topologies.load(cluster) if isinstance(cluster, str) else cluster,
            "model": described,
            "weights": stored,
            "draft_weights": stored_draft,
            "workload": Workload.parse(sizes, "workload"),
            "strategy": chosen.name,
            "method": origin_of(chosen.name),
            "params": given,
        },
        "run",
    )
    return made


@naming_extras()
def predict(
    cluster: str | ClusterSpec, model: str | ModelSpec, method: str | Strategy | type[Strategy], **more: Any
) -> Report:
    """The report of the simulated world; `more` as for `spec`. Raises `EdgeLoomError`."""
    asked = ENVIRONMENT.with_profile(spec(cluster, model, method, **more))
    return shown(with_uncertainty(predict_spec(asked)))


@naming_extras()
def run(
    cluster: str | ClusterSpec,
    model: str | ModelSpec,
    method: str | Strategy | type[Strategy],
    world: Literal["emulated", "loopback"] = "emulated",
    **more: Any,
) -> Report:
    """The report of a real run: real weights, one process per device. In the `world` `emulated` over links as
    they are drawn, which needs the extra `emulator`; in `loopback` at this machine's own speed, without a
    network.

    `more` as for `spec`. Raises `EdgeLoomError`.
    """
    asked = spec(cluster, model, method, **more)
    if world == "loopback":
        native = asked.model_copy(update={"dilation": "native"})
        return shown(execute(native, lambda spec, dilation: LoopbackNetwork(spec.cluster)))
    if is_only_here(asked):
        raise SpecError(
            f"method {asked.strategy}: it is only in this process, and an emulation is one of its own: put "
            'the class into a file and give FILE.py:CLASS, or run it with world="loopback".'
        )
    return shown(emulate(asked, _say_waits))


def is_only_here(asked: RunSpec) -> bool:
    """Whether its method is of no file and no package, so that no other process can have it."""
    return asked.method is not None and not (asked.method.package or source_of(asked.strategy))


def _say_waits(events: list[Event]) -> None:
    """Say on standard error what an emulation waits for: another may have this machine for long."""
    for event in events:
        if isinstance(event, StateChanged) and event.state == "queued":
            sys.stderr.write(f"waiting: {event.detail}\n")


@naming_extras()
def experiment(
    what: str | Path | Experiment,
    *methods: Strategy | type[Strategy],
    output: str | Path = "results",
    only_predict: bool = False,
    jobs: int | None = None,
) -> pandas.DataFrame:
    """Carry out what is left of an experiment (a file, a name or a value), and give its results so far: a
    line for each point and world; `only_predict`: of the simulated world alone. `methods` are those that it
    names and that only this process has.

    Results are kept in the folder `output`. Predictions run in `jobs` processes (all cores), or in this one
    if a method is of no file, as one of a notebook. Raises `EdgeLoomError`.
    """
    need("pandas")
    added = [add(method() if isinstance(method, type) else method) for method in methods]
    described = what if isinstance(what, Experiment) else load(str(what))
    campaign = campaign_of(described, ENVIRONMENT, Path(output), only_predict)
    is_only_here = any(not source_of(method.name) for method in added)
    at_once = 1 if is_only_here else jobs or os.cpu_count() or 1
    for _ in carry_out_all(campaign.tasks(), campaign.store.add, at_once, campaign.emulation):
        pass
    return frame(campaign.rows())


def compare(*reports: RunReport, baseline: int = 0) -> Comparison:
    """Which parameters of these runs differ, and how their figures do, from those of number `baseline`."""
    return compare_reports(reports, baseline)
