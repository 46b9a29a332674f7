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
from engine.program.serve import serve
from engine.reports.fold import fold
from engine.reports.verify import judge, rounded_weights
from engine.reports.versions import versions
from engine.runs.method import method_report
from engine.runs.predict import Prepared, outcome_of, prepare
from engine.strategies.outside import errors_of
from engine.strategies.registry import strategy
from engine.worlds.calculated import CalculatedDevice, CalculatedWorld
from engine.worlds.common.source import RealSource


def calculate(spec: RunSpec) -> RunReport:
    """The report of the calculated world, compared with the reference. A device that fails ends the run:
    there is no new plan here. Raises `SpecError` and `PlanError`.
    """
    prepared = prepare(spec)
    spec, plan = prepared.spec, prepared.plan
    trace: list[Span | Mark] = []
    world, chosen = CalculatedWorld(spec, plan, trace.append), strategy(spec.strategy)
    source = RealSource(world.devices[spec.cluster.source_rank])
    programs = (
        (rank, serve(device, chosen, plan, spec.workload, prepared.requests, _at_source(device, source)))
        for rank, device in enumerate(world.devices)
    )
    outcome, correctness = Outcome(), Correctness()
    try:
        with errors_of(chosen, "a device's program raised", RunError):
            world.run(programs)
        correctness = _compared(prepared, outputs_of(world, source))
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


def _at_source(device: object, source: RealSource) -> RealSource | None:
    return source if device is source.device else None


def outputs_of(world: CalculatedWorld, source: RealSource) -> dict[str, torch.Tensor]:
    """What the source has kept, and the pieces of logits that stay on other devices."""
    pieces = [device.kept for device in world.devices if isinstance(device, CalculatedDevice)]
    return source.tensors() | {name: piece for kept in pieces for name, piece in kept.items()}


def _compared(prepared: Prepared, got: dict[str, torch.Tensor]) -> Correctness:
    spec = prepared.spec
    lossy = strategy(spec.strategy).is_lossy(prepared.plan)
    reference = reference_of(compute_reference(spec))
    found = judge(spec, reference, got, lossy, partial(compute_forced, spec))
    return found.model_copy(update={"rounded_weights": rounded_weights(spec, got, compute_forced)})
