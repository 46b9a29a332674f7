"""What the simulated world says of a real run. `Predictions` in engine/domain/report.py names the three."""

from __future__ import annotations

from engine.domain.report import FromHereOn, Outcome, Prediction
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.reports.fold import fold
from engine.runs.native import Simulated, Trace, predict_native
from engine.runs.predict import Prepared, simulate
from engine.worlds.simulated.device import Decisions


def played_again(
    prepared: Prepared, scenario: Scenario, decisions: Decisions | None = None
) -> Simulated | None:
    """The run of `prepared` with the changes of `scenario`, in the simulated world; None if that cannot say
    how long it takes: nobody knows the requests, or the host of a run at native speed is not calibrated.
    """
    spec = prepared.spec.model_copy(update={"scenario": scenario})
    if not _is_known(spec):
        return None
    prepared = prepared._replace(spec=spec)
    if spec.dilation == "native":
        return predict_native(prepared, spec.profile, decisions) if spec.profile is not None else None
    trace, outcome = simulate(prepared, decisions=decisions)
    return Simulated(fold(spec, prepared.plan, trace, world="predicted", outcome=outcome), trace)


def _is_known(spec: RunSpec) -> bool:
    """Whether the requests are known: of an open workload they are once they were recorded."""
    return not spec.workload.is_open or bool(spec.workload.trace)


def before_the_start(prepared: Prepared, undisturbed: Trace, outcome: Outcome) -> Simulated | None:
    """The prediction before the start. `undisturbed` is the run simulated without changes, and `outcome` how
    that ended; None where it would not finish.
    """
    spec = prepared.spec
    if outcome.kind == "cancelled" or not _is_known(spec):
        return None
    if spec.scenario.changes or spec.dilation == "native":
        simulated = played_again(prepared, spec.scenario)
    else:
        report = fold(spec, prepared.plan, undisturbed, world="predicted", outcome=outcome)
        simulated = Simulated(report, list(undisturbed))
    return simulated if simulated and simulated.report.outcome.kind == "finished" else None


def figures_of(simulated: Simulated) -> Prediction:
    """The figures that a real run's report keeps."""
    report = simulated.report
    return Prediction(
        latency_s=report.latency_s,
        ttft_s=report.ttft_s,
        tpot_s=report.tpot_s,
        tokens_per_s=report.tokens_per_s,
        attribution=report.attribution,
        peak_memory_bytes={device.name: device.peak_memory_bytes for device in report.devices},
    )


def token_times(trace: Trace) -> list[float]:
    """When each token came, in order, of all requests."""
    return sorted(item.time_s for item in trace if isinstance(item, Mark) and item.name == "token_emitted")


def from_here_on(simulated: Simulated, real: Trace, at_s: float, changes: int) -> FromHereOn:
    """The rest of a run whose trace is `real` at `at_s`: from its newest token on, what the simulation takes
    from the same token on. `changes` is how many changes the simulation knows.
    """
    report = simulated.report
    begins_s = min((request.arrival_s for request in report.requests), default=0.0)
    came, expected = token_times(real), token_times(simulated.trace)
    reached = min(len(came), len(expected))
    since_s, at_token_s = (came[-1], expected[reached - 1]) if reached else (0.0, 0.0)
    left_s = max(0.0, since_s + (begins_s + report.latency_s - at_token_s) - at_s)
    return FromHereOn(at_s=at_s, changes=changes, left_s=left_s, latency_s=at_s + left_s - begins_s)
