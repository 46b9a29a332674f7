"""Runs in the calculated world: virtual times as predicted, real tensors, one process.

What depends on data (which heads EdgeFormer prunes, how far a lossy method is off) is real then, and a
cluster may have more memory than this machine only as far as the tensors fit. It loads torch.
"""

from __future__ import annotations

from functools import partial

import torch

from engine.domain.errors import RunError
from engine.domain.report import Correctness, Outcome, RunReport
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.models.reference.teacher_forcing import compute as compute_forced
from engine.models.reference.transformers_outputs import compute as compute_reference
from engine.models.reference.transformers_outputs import reference_of
from engine.reports.fold import fold
from engine.reports.verify import judge, rounded_weights
from engine.reports.versions import versions
from engine.runs.method import method_report
from engine.runs.predict import Prepared, outcome_of, prepare, run_world
from engine.strategies.registry import strategy
from engine.worlds.calculated import CalculatedDevice, CalculatedWorld
from engine.worlds.common.source import CalculatedSource


def calculate(spec: RunSpec) -> RunReport:
    """The report of the calculated world, compared with the reference. Raises `SpecError` and `PlanError`."""
    prepared = prepare(spec)
    spec, plan = prepared.spec, prepared.plan
    trace: list[Span | Mark] = []
    outcome, correctness = Outcome(), Correctness()
    try:
        correctness = _compared(prepared, outputs_of(prepared, trace))
    except RunError as error:
        outcome = outcome_of(error)
    report = fold(spec, plan, trace, world="calculated", outcome=outcome)
    return report.model_copy(
        update={
            "correctness": correctness,
            "versions": versions(),
            "method": method_report(spec, plan, trace),
        }
    )


def outputs_of(prepared: Prepared, trace: list[Span | Mark]) -> dict[str, torch.Tensor]:
    """What the source gets of every request i in the calculated world, `logits.<i>`, `tokens.<i>` or
    `hidden.<i>`, and the pieces of logits that stay on other devices. The run's events go to `trace`.

    Raises the `RunError` that ends the run.
    """
    spec = prepared.spec
    world = CalculatedWorld(spec, prepared.plan, trace.append)
    source = CalculatedSource(world.devices[spec.cluster.source_rank])
    run_world(prepared, world, source, trace)
    pieces = [device.kept for device in world.devices if isinstance(device, CalculatedDevice)]
    return source.tensors() | {name: piece for kept in pieces for name, piece in kept.items()}


def _compared(prepared: Prepared, got: dict[str, torch.Tensor]) -> Correctness:
    spec = prepared.spec
    lossy = strategy(spec.strategy).is_lossy(prepared.plan)
    reference = reference_of(compute_reference(spec))
    found = judge(spec, reference, got, lossy, partial(compute_forced, spec))
    return found.model_copy(update={"rounded_weights": rounded_weights(spec, got, compute_forced)})
