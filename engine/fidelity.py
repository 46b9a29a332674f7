"""How far a real run may be believed: pacing and links, asked for against achieved, and one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, quantiles

from engine.cluster import ClusterSpec
from engine.launch import RealResult
from engine.network import LinkMeasurement
from engine.report import Fidelity

COMPUTE_MEAN_LIMIT = 0.05
LATE_LIMIT = 0.05
LINK_LIMIT = 0.05


def fidelity_of(
    cluster: ClusterSpec, result: RealResult, links: Sequence[LinkMeasurement], backend: str, paced: bool
) -> Fidelity:
    """The verdict of a run. A native run has no pacing to judge.

    A paced run that ended before its devices told their pacing is never valid: None, if nothing is wrong.
    """
    errors = sorted(abs(error) for stats in result.pacing.values() for error in stats["errors"])
    operations = sum(stats["operations"] for stats in result.pacing.values())
    late = sum(stats["late"] for stats in result.pacing.values())
    late_frac = late / operations if operations else 0.0
    mean = fmean(errors) if paced and errors else None
    p95 = quantiles(errors, n=20)[-1] if paced and len(errors) > 1 else mean
    link_error = max((abs(m.achieved_bit_per_s / m.asked_bit_per_s - 1) for m in links), default=None)
    why = []
    if paced and mean is not None and mean > COMPUTE_MEAN_LIMIT:
        why.append(
            f"operations took {mean:.1%} longer than their device's model says "
            f"(limit {COMPUTE_MEAN_LIMIT:.0%}): raise the dilation."
        )
    if paced and late_frac > LATE_LIMIT:
        why.append(
            f"{late_frac:.1%} of the operations overran (limit {LATE_LIMIT:.0%}): raise the dilation."
        )
    if link_error is not None and link_error > LINK_LIMIT:
        worst = max(links, key=lambda m: abs(m.achieved_bit_per_s / m.asked_bit_per_s - 1))
        why.append(
            f"link {cluster.links[worst.link].name} carries "
            f"{worst.achieved_bit_per_s / worst.asked_bit_per_s:.1%} of the rate asked for "
            f"(limit ±{LINK_LIMIT:.0%})."
        )
    valid = None if paced and not operations and not why else not why
    return Fidelity(
        valid=valid, compute_error_mean=mean, compute_error_p95=p95, link_error_max=link_error,
        late_frac=late_frac if paced else None, backend=backend, why=tuple(why),
    )
