"""Carries out one drawn run on real tensors in this process and compares it with `transformers`.

The run is played in the calculated world: the same programs and plans as everywhere, every operation computed
with torch, messages in the order of the virtual clock.
"""

from __future__ import annotations

import traceback
from functools import partial
from typing import Literal, NamedTuple, get_args

import torch

from engine.domain.errors import OutOfMemory, PeerFailed, PlanError, RunError, SpecError
from engine.domain.plan import Plan
from engine.domain.report import Correctness
from engine.domain.spec import RunSpec
from engine.models.reference.teacher_forcing import compute as compute_forced
from engine.models.reference.transformers_outputs import compute as compute_reference
from engine.models.reference.transformers_outputs import reference_of
from engine.reports.verify import judge
from engine.runs.calculate import outputs_of as kept_outputs
from engine.runs.predict import Prepared, prepare
from engine.strategies.registry import plan_from_json, strategy

End = Literal["equal", "lossy", "refused", "out of memory", "lost", "wrong"]
ENDS: tuple[End, ...] = get_args(End)


class Verdict(NamedTuple):
    """How a case ended. equal: the numbers and tokens of `transformers`; lossy: its plan says so and its
    figures are finite; refused: one sentence instead of a plan; lost: the devices that are left cannot go on,
    which is said; wrong: everything else.
    """

    end: End
    sentence: str = ""
    correctness: Correctness = Correctness()


def check(spec: RunSpec) -> Verdict:
    """Plan, run and compare `spec`. Every exception that is no refusal and no stated outcome is `wrong`."""
    try:
        return _check(spec)
    except Exception as problem:
        place = traceback.extract_tb(problem.__traceback__)[-1]
        words = " ".join(traceback.format_exception_only(problem)[-1].split())
        return Verdict("wrong", f"{words} ({place.filename.rpartition('/')[2]}, line {place.lineno})")


def _check(spec: RunSpec) -> Verdict:
    try:
        prepared = prepare(spec)
    except (PlanError, SpecError) as refusal:
        return refused(refusal)
    travelled = plan_from_json(prepared.plan.model_dump(mode="json"))
    if travelled != prepared.plan:
        return Verdict("wrong", "the plan is another one after a journey as JSON")
    try:
        got = outputs_of(prepared._replace(plan=travelled))
    except OutOfMemory as end:
        return Verdict("out of memory", str(end))
    except PeerFailed as end:
        clear = "it is the source" in str(end) or "cannot go on" in str(end)
        return Verdict("lost" if clear and prepared.spec.scenario.changes else "wrong", str(end))
    except RunError as end:
        return Verdict("wrong", f"{type(end).__name__}: {end}")
    return _compared(spec, travelled, got)


def refused(refusal: PlanError | SpecError) -> Verdict:
    sentence = str(refusal)
    if "\n" in sentence or not sentence.endswith("."):
        return Verdict("wrong", f"the refusal is not one sentence: {sentence!r}")
    return Verdict("refused", sentence)


def outputs_of(prepared: Prepared) -> dict[str, torch.Tensor]:
    """What the source gets, as `engine.runs.calculate.outputs_of`."""
    return kept_outputs(prepared, [])


def _compared(spec: RunSpec, plan: Plan, got: dict[str, torch.Tensor]) -> Verdict:
    lossy = strategy(spec.strategy).is_lossy(plan)
    reference = reference_of(compute_reference(spec))
    found = judge(spec, reference, got, lossy, partial(compute_forced, spec))
    if found.ok is False:
        return Verdict("wrong", found.why, found)
    return Verdict("lossy" if lossy else "equal", "", found)
