"""Runs to be judged, and the verdicts on them."""

import topologies
from engine.domain.network import LinkMeasurement
from engine.domain.report import Outcome, RunReport
from engine.domain.scenario import (
    Scenario,
)
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.models import catalogue
from engine.runs.fidelity import (
    Played,
    fidelity_of,
)

LAB = topologies.load("lab-3")
MODEL, WEIGHTS = catalogue.resolve("tiny-gpt2", "random")
GOOD_LINK = LinkMeasurement(0, True, 1e8, 0.99e8, "tbf")


def report(latency_s=1.0, dilation=4.0, cluster=LAB, kind="finished", changes=()):
    asked = "native" if dilation is None else dilation
    spec = RunSpec(cluster=cluster, model=MODEL, weights=WEIGHTS, strategy="gpipe", dilation=asked)
    return RunReport(
        spec=spec,
        plan=None,
        world="emulated",
        dilation=dilation or 1.0,
        outcome=Outcome(kind=kind),
        latency_s=latency_s,
        scenario=Scenario(changes=changes),
    )


def op(start_s, took_s, name="ffn"):
    return Span("desk", "compute", name, 0, start_s, start_s + took_s, flops=100, bytes=10)


PREDICTED = [op(0.0, 0.1), op(0.1, 0.1), op(0.2, 0.2, "head")]


def stats(errors=(0.0, 0.01), late=0, used=(0.5, 0.5), target_s=1e6):
    return {"desk": {"operations": 40, "late": late, "errors": errors, "used": used, "target_s": target_s}}


def verdict(
    pacing=None,
    links=(GOOD_LINK,),
    run=None,
    trace=PREDICTED,
    predicted=None,
    live_rate_changes=0,
    model=PREDICTED,
):
    played = Played(trace, stats() if pacing is None else pacing, links, "tbf", live_rate_changes)
    return fidelity_of(run or report(), played, predicted or report(), model)
