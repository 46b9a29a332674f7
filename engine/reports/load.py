"""What users of a loaded cluster see: how long requests waited and took, in percentiles, and goodput.

Percentiles are interpolated linearly between the two nearest requests (as `numpy.percentile` does).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from engine.domain.report import LoadReport, Percentiles, RequestReport
from engine.domain.workload import Workload


def load_report(workload: Workload, requests: Sequence[RequestReport], latency_s: float) -> LoadReport:
    """How a run coped with its load. `requests` are those that arrived; `latency_s` is from the first arrival
    to the last answer.

    Requests without an answer count as arrived and as waiting, and not as within an objective. One that was
    cancelled waits no more from then on.
    """
    answered = [request for request in requests if request.answered_s is not None]
    met = [request for request in answered if is_within(workload, request)]
    begun = [request for request in requests if request.queue_s is not None]
    queue = waiting_over_time(requests)
    waited_s = sum((after - before) * count for (before, count), (after, _) in pairwise(queue))
    return LoadReport(
        arrived=len(requests),
        answered=len(answered),
        answered_per_s=len(answered) / latency_s if latency_s > 0 else 0.0,
        within_objectives=len(met),
        goodput_per_s=len(met) / latency_s if latency_s > 0 else 0.0,
        queue_s=percentiles([request.queue_s or 0.0 for request in begun]),
        first_token_s=percentiles([request.ttft_s for request in answered]),
        per_token_s=percentiles([per for request in answered if (per := per_token_s(request)) is not None]),
        answer_s=percentiles([request.answered_s or 0.0 for request in answered]),
        longest_queue=max((count for _, count in queue), default=0),
        mean_queue=waited_s / latency_s if latency_s > 0 else 0.0,
    )


def is_within(workload: Workload, request: RequestReport) -> bool:
    """Whether an answered request kept every objective that `workload` has; true if it has none."""
    first_s, each_s = workload.slo_first_token_s, workload.slo_per_token_s
    per_s = per_token_s(request)
    return (first_s is None or request.ttft_s <= first_s) and (
        each_s is None or per_s is None or per_s <= each_s
    )


def per_token_s(request: RequestReport) -> float | None:
    """The mean time of a later token of one request; None if it has no second one."""
    if len(request.token_s) < 2:
        return None
    return (request.token_s[-1] - request.token_s[0]) / (len(request.token_s) - 1)


def waiting_over_time(requests: Sequence[RequestReport]) -> list[tuple[float, int]]:
    """How many requests wait when: (virtual time, their number from then on), without those in work."""
    steps: dict[float, int] = {}
    for request in requests:
        steps[request.arrival_s] = steps.get(request.arrival_s, 0) + 1
        left_s = request.cancelled_s if request.queue_s is None else request.queue_s
        if left_s is not None:
            until_s = request.arrival_s + left_s
            steps[until_s] = steps.get(until_s, 0) - 1
    times_s = sorted(steps)
    return list(zip(times_s, accumulate(steps[time_s] for time_s in times_s), strict=True))


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """The percentiles of `values`; None without values."""
    if not values:
        return None
    ranked = sorted(values)
    return Percentiles(
        mean=sum(ranked) / len(ranked),
        p50=_percentile(ranked, 0.50),
        p95=_percentile(ranked, 0.95),
        p99=_percentile(ranked, 0.99),
    )


def _percentile(ranked: Sequence[float], fraction: float) -> float:
    place = fraction * (len(ranked) - 1)
    below = int(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (place - below) * (ranked[above] - ranked[below])
