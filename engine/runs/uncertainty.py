"""How far a prediction may be from real boards: the same plan with boards at both ends of their rates.

A board whose rates were not measured here may be faster or slower by a factor, which depends on what its
rates are (`engine/domain/rates.py`). All boards are taken at the same end at once, so that the two runs bound
those in which they differ. Links and messages stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.conditions import slowed_device
from engine.domain.rates import IN_WORDS, WITHIN, FormatRate, format_bits
from engine.domain.report import RunReport, Uncertainty
from engine.domain.spec import RunSpec
from engine.models.inputs.prompts import requests_of
from engine.reports.fold import fold
from engine.runs.predict import Prepared, simulate
from engine.worlds.simulated.device import Decisions

End = Literal["fast", "slow"]
ENDS: tuple[End, End] = ("fast", "slow")
MOST_STEPS = 10_000
"""Tokens × devices of a run that is still predicted twice more."""


def with_uncertainty(report: RunReport, should_stop: Callable[[], bool] = lambda: False) -> RunReport:
    """A predicted `report` with its uncertainty."""
    if report.plan is None:
        return report
    prepared = Prepared(report.spec, requests_of(report.spec), report.plan)
    return report.model_copy(update={"uncertainty": uncertainty_of(prepared, report, should_stop)})


def uncertainty_of(
    prepared: Prepared,
    predicted: RunReport,
    should_stop: Callable[[], bool] = lambda: False,
    decisions: Decisions | None = None,
) -> Uncertainty | None:
    """How far real boards may be from the prediction of `prepared`, which had `decisions`; None if every
    board that computes was measured here or its owner gave its rates, or the run does not finish. Of a long
    run only the basis.
    """
    spec = prepared.spec
    computing = {device.name for device in predicted.devices if device.flops}
    basis = basis_of(spec, computing)
    if not basis or predicted.outcome.kind != "finished":
        return None
    tokens = sum(len(request.token_s) or 1 for request in predicted.requests)
    if tokens * len(predicted.devices) > MOST_STEPS:
        return Uncertainty(basis=basis)
    ends = []
    for end in ENDS:
        run = at_end(spec, end)
        trace, outcome = simulate(prepared._replace(spec=run), should_stop, decisions)
        if outcome.kind != "finished":  # it was stopped, or the slower run misses a time limit
            return Uncertainty(basis=basis)
        ends.append(fold(run, prepared.plan, trace, world="predicted", outcome=outcome))
    fast, slow = ends
    return Uncertainty(
        basis=basis,
        latency_s=(fast.latency_s, slow.latency_s),
        ttft_s=(fast.ttft_s, slow.ttft_s),
        tpot_s=(fast.tpot_s, slow.tpot_s),
    )


def within(spec: RunSpec, device: DeviceSpec) -> float:
    """The factor within which the times of `device` are expected; 1 where its owner says what it does."""
    if (spec.compute_model or device.compute_model) == "measured":
        return 1.0
    row = _row(spec, device)
    basis = row.basis if row else device.basis
    return WITHIN[basis] if basis else 1.0


def basis_of(spec: RunSpec, computing: Iterable[str]) -> str:
    """How far the devices `computing` may be from their prediction, and what their rates are from; empty if
    none is uncertain.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(computing, key=spec.cluster.rank):
        device = spec.cluster.devices[spec.cluster.rank(name)]
        factor = within(spec, device)
        row = _row(spec, device)
        basis = row.basis if row else device.basis
        if factor > 1 and basis:
            which = f": {row.source}" if row and row.source else ""
            words = f"{1 / factor:.2g} to {factor:g} times the prediction ({IN_WORDS[basis]}{which})"
            groups.setdefault(words, []).append(name)
    return "; ".join(f"{_names(names)}: {words}" for words, names in groups.items())


def _names(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def _row(spec: RunSpec, device: DeviceSpec) -> FormatRate | None:
    bits = spec.model.weight_bits or 8 * spec.model.element_bytes
    if (spec.compute_model or device.compute_model) == "flops":
        return device.format_rate(format_bits(bits))
    return device.rate_of(bits)


def at_end(spec: RunSpec, end: End) -> RunSpec:
    """`spec` with all boards at one end of their rates. Who computes what stays with the plan."""
    devices = []
    for device in spec.cluster.devices:
        factor = within(spec, device)
        devices.append(slowed_device(device, factor if end == "slow" else 1 / factor))
    cluster: ClusterSpec = spec.cluster.model_copy(update={"devices": tuple(devices)})
    return spec.model_copy(update={"cluster": cluster})
