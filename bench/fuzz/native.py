"""Carries out one drawn run as processes of this machine: one per device, at native speed over loopback.

What depends on when messages are read shows only here, and almost only where other programs take the cores.
"""

from __future__ import annotations

from bench.fuzz.check import Verdict, refused
from engine.domain.errors import PlanError, SpecError
from engine.domain.spec import RunSpec
from engine.runs.local import run_local


def check_natively(spec: RunSpec) -> Verdict:
    """Run `spec` at native speed and compare it with `transformers`."""
    try:
        report, _ = run_local(spec.model_copy(update={"dilation": "native"}))
    except (PlanError, SpecError) as refusal:
        return refused(refusal)
    outcome, correctness = report["outcome"], report["correctness"]
    if outcome["kind"] == "out_of_memory":
        return Verdict("out of memory", outcome["sentence"])
    if outcome["kind"] != "finished":
        return Verdict("wrong", f"{outcome['kind']}: {outcome['sentence']}")
    if not correctness["checked"] or correctness["ok"] is False:
        return Verdict("wrong", correctness["why"] or "its output was not checked")
    return Verdict("lossy" if correctness["lossy"] else "equal")
