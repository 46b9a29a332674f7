"""Whether the claims of a showcase hold: ratios of two reports' measures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from engine.domain.report import RunReport
from engine.domain.showcase import Claim, Measure, Showcase


class Verdict(NamedTuple):
    """How a claim of a showcase came out. `ratio` is the other run's measure over the showcase's own; None if
    one of the two has no result.
    """

    claim: Claim
    ratio: float | None
    holds: bool


def measure_of(report: RunReport, measure: Measure) -> float:
    """Seconds."""
    if measure == "longest_pause_s":
        return longest_pause_s(report)
    value: float = getattr(report, measure)
    return value


def longest_pause_s(report: RunReport) -> float:
    """The longest time between two tokens of one request, s; 0 with fewer than two."""
    pauses = [later - earlier for request in report.requests for earlier, later in pairwise(request.token_s)]
    return max(pauses, default=0.0)


def verdicts(
    showcase: Showcase, own: RunReport, others: Mapping[str, RunReport | None]
) -> tuple[Verdict, ...]:
    """One verdict per claim; `others` are reports by the names of `showcase.others`, None without a plan."""
    return tuple(_verdict(claim, own, others[claim.other]) for claim in showcase.claims)


def _verdict(claim: Claim, own: RunReport, other: RunReport | None) -> Verdict:
    possible = other is not None and other.outcome.kind == "finished"
    finished = own.outcome.kind == "finished"
    own_s = measure_of(own, claim.measure)
    if claim.at_least is None:
        return Verdict(claim, None, finished and not possible)
    if not finished or other is None or not possible or own_s <= 0:
        return Verdict(claim, None, False)
    ratio = measure_of(other, claim.measure) / own_s
    holds = claim.at_least <= ratio and (claim.at_most is None or ratio <= claim.at_most)
    return Verdict(claim, ratio, holds)
