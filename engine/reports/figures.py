"""The figures of a report that a list of runs shows, each a number under the name of its unit."""

from __future__ import annotations

from itertools import pairwise

from engine.domain.report import RunReport
from engine.reports.compare import METRICS
from engine.reports.load import percentiles

LISTED = (
    "link_bytes",
    "payload_bytes",
    "peak_memory_bytes",
    "energy_j",
    "queue_p95_s",
    "ttft_p95_s",
    "answer_p95_s",
    "goodput_per_s",
    "predicted_latency_s",
)
"""Metrics of comparisons that lists show too."""


def listed_figures(report: RunReport) -> dict[str, float]:
    """By name; without those that the report does not have. Of a run that did not finish only the dilation
    is comparable with others.

    token_p50_s, token_p95_s, token_p99_s   of the times between two tokens, of all requests
    link_frac                               the part of the critical path that went to links
    """
    found: dict[str, float | None] = {"dilation": report.dilation if report.world == "real" else None}
    if report.outcome.kind == "finished":
        found |= {metric.name: metric.of(report) for metric in METRICS if metric.name in LISTED}
        found |= _of_tokens(report)
        if report.latency_s > 0:
            found["link_frac"] = report.attribution.link_s / report.latency_s
    return {key: float(value) for key, value in found.items() if value is not None}


def _of_tokens(report: RunReport) -> dict[str, float]:
    over = percentiles([b - a for request in report.requests for a, b in pairwise(request.token_s)])
    if over is None:
        return {}
    return {"token_p50_s": over.p50, "token_p95_s": over.p95, "token_p99_s": over.p99}
