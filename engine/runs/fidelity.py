"""How far a real run may be believed: pacing and links, asked for against achieved, and one verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, quantiles
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.network import LinkMeasurement
from engine.domain.report import Fidelity
from engine.runs.supervisor import RealResult
from engine.worlds.real.dilation import OP_HOST_S, coldness, enough_dilation

COMPUTE_MEAN_LIMIT = 0.05
LATE_LIMIT = 0.05
LINK_LIMIT = 0.05


def fidelity_of(
    cluster: ClusterSpec,
    result: RealResult,
    links: Sequence[LinkMeasurement],
    backend: str,
    dilation: float | None,
) -> Fidelity:
    """The verdict of a run. A native run (`dilation` None) has no pacing to judge.

    A paced run that ended before its devices told their pacing is never valid: None, if nothing is wrong.
    """
    paced = dilation is not None
    errors = sorted(abs(error) for stats in result.pacing.values() for error in stats["errors"])
    operations = sum(stats["operations"] for stats in result.pacing.values())
    late = sum(stats["late"] for stats in result.pacing.values())
    late_frac = late / operations if operations else 0.0
    mean = fmean(errors) if paced and errors else None
    p95 = quantiles(errors, n=20)[-1] if paced and len(errors) > 1 else mean
    link_error = max((abs(m.achieved_bit_per_s / m.asked_bit_per_s - 1) for m in links), default=None)
    why = []
    if dilation is not None and mean is not None and mean > COMPUTE_MEAN_LIMIT:
        why.append(
            f"operations took {mean:.1%} longer than their device's model says "
            f"(limit {COMPUTE_MEAN_LIMIT:.0%}): {_remedy(dilation, result)}."
        )
    if dilation is not None and late_frac > LATE_LIMIT:
        remedy = _remedy(dilation, result)
        why.append(f"{late_frac:.1%} of the operations overran (limit {LATE_LIMIT:.0%}): {remedy}.")
    if link_error is not None and link_error > LINK_LIMIT:
        worst = max(links, key=lambda m: abs(m.achieved_bit_per_s / m.asked_bit_per_s - 1))
        why.append(
            f"link {cluster.links[worst.link].name} carries "
            f"{worst.achieved_bit_per_s / worst.asked_bit_per_s:.1%} of the rate asked for "
            f"(limit ±{LINK_LIMIT:.0%})."
        )
    valid = None if paced and not operations and not why else not why
    return Fidelity(
        valid=valid,
        compute_error_mean=mean,
        compute_error_p95=p95,
        link_error_max=link_error,
        late_frac=late_frac if paced else None,
        backend=backend,
        why=tuple(why),
    )


def _remedy(dilation: float, result: RealResult) -> str:
    """The dilation that would do: with it all but 5 % of what each device did would have had head-room."""
    op_s = OP_HOST_S * coldness(len(result.pacing))
    used = [_used_frac(stats, op_s) for stats in result.pacing.values()]
    return f"raise the dilation from {dilation:g} to {enough_dilation(dilation, max(used)):g}"


def _used_frac(stats: Mapping[str, Any], op_s: float) -> float:
    """The part of its time that a device's work took: 95 % of batches, and `op_s` more per operation."""
    if not stats["used"]:
        return 0.0
    batches = stats["used"]
    work = quantiles(batches, n=20)[-1] if len(batches) > 1 else batches[0]
    return float(work + stats["operations"] * op_s / stats["target_s"])
