"""The table of figures: what a report measures, each a row with its computation.

The command line, a run's CSV, the lists of runs, Compare, experiments, the pages of the browser (through
`/api/metrics`) and docs/reference/metrics.md derive from this table, so that a new figure is a row of it.
Those of installed packages follow ours.
A figure is None where a report does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from engine.domain.report import Percentiles, RunReport
from engine.domain.scenario import DropDevice, FreezeDevice
from engine.domain.world import MEASURED
from engine.reports.load import per_token_s, percentiles
from engine.reports.metric import Metric, Place, Subject, of_device, of_link, of_request, of_run, of_token
from engine.reports.missed import missed_changes
from engine.reports.outside import installed_metrics


# Computations that are more than a field ----------------------------------------------------------
def _finished(value: Callable[[RunReport], float | None]) -> Callable[[RunReport], float | None]:
    """`value`, or None for a run that did not finish."""
    return lambda report: value(report) if report.outcome.kind == "finished" else None


def _tokens_per_s(report: RunReport) -> float | None:
    """Tokens per second; None for an encoder, whose answer has no tokens."""
    return report.tokens_per_s if any(request.token_s for request in report.requests) else None


def _link_frac(report: RunReport) -> float | None:
    return report.attribution.link_s / report.latency_s if report.latency_s > 0 else None


def _between_tokens(percentile: str) -> Callable[[RunReport], float | None]:
    """A percentile of the times between two tokens, of all requests."""

    def value(report: RunReport) -> float | None:
        over = percentiles([b - a for request in report.requests for a, b in pairwise(request.token_s)])
        return None if over is None else getattr(over, percentile)

    return _finished(value)


def _load(field: str) -> Callable[[RunReport], float | None]:
    """A figure of the load; None for a workload without a queue."""
    return lambda report: None if report.load is None else getattr(report.load, field)


def _attained_frac(report: RunReport) -> float | None:
    """The share of the requests that kept the objectives of the workload; None if it has none."""
    workload, load = report.spec.workload, report.load
    has_objectives = workload.slo_first_token_s is not None or workload.slo_per_token_s is not None
    if load is None or not load.arrived or not has_objectives:
        return None
    return load.within_objectives / load.arrived


def _over_requests(field: str, percentile: str) -> Callable[[RunReport], float | None]:
    """A percentile over requests; None for a workload without a queue."""

    def value(report: RunReport) -> float | None:
        over: Percentiles | None = getattr(report.load, field) if report.load else None
        return None if over is None else getattr(over, percentile)

    return value


def _recovery(*parts: str) -> Callable[[RunReport], float | None]:
    """Seconds of these parts of all recoveries together; None without one, or where a part is not known."""

    def value(report: RunReport) -> float | None:
        times = [getattr(one, part) for one in report.recoveries for part in parts]
        return sum(times) if times and None not in times else None

    return value


def _changed_by_bits(report: RunReport) -> float | None:
    found = report.correctness.rounded_weights
    return found.differing_tokens / found.tokens if found and found.tokens else None


def _predicted_latency_s(report: RunReport) -> float | None:
    known = report.predictions.with_all_changes_known
    return known.latency_s if known else None


def _of_drafts(field: str) -> Callable[[RunReport], float | None]:
    """A figure of a method that drafts tokens; None for others."""
    return lambda report: getattr(report.method, field, None)


def _tokens_lost(report: RunReport) -> float | None:
    """Tokens that were asked for and did not come; None for a run that lost no device, or in which people
    asked while it went on.
    """
    workload = report.spec.workload
    lost = any(isinstance(change, DropDevice | FreezeDevice) for change in report.spec.scenario.changes)
    if not lost or workload.is_open:
        return None
    each = [row.new_tokens for row in workload.trace] or [workload.new_tokens] * workload.requests
    return float(max(0, sum(each) - sum(len(request.token_s) for request in report.requests)))


def _changes_missed(report: RunReport) -> float | None:
    return len(missed_changes(report)) if report.spec.scenario.changes else None


# The table, in the order in which people look for figures -----------------------------------------
BUILT_IN: tuple[Metric, ...] = (
    of_run(
        "latency_s",
        "End-to-end latency",
        "s",
        "lower",
        _finished(lambda r: r.latency_s),
        shown=("report", "list", "usual"),
        short="End to end",
        about="from the first request to the last token",
    ),
    of_run(
        "ttft_s",
        "Time to first token",
        "s",
        "lower",
        _finished(lambda r: r.ttft_s),
        shown=("report", "list", "usual"),
        short="TTFT",
        about="the prefill; mean over the requests",
    ),
    of_run(
        "tpot_s",
        "Time per output token",
        "s",
        "lower",
        _finished(lambda r: r.tpot_s or None),
        shown=("report", "list", "usual"),
        short="TPOT",
        about="one decode step; mean over the tokens after the first of a request",
    ),
    of_run(
        "tokens_per_s",
        "Tokens per second",
        "1/s",
        "higher",
        _finished(_tokens_per_s),
        shown=("report", "list"),
        short="Tokens/s",
        about="generated tokens per virtual second",
    ),
    of_run(
        "energy_j",
        "Energy",
        "J",
        "lower",
        lambda r: r.energy_j or None,
        shown=("report", "list"),
        about="of devices while they compute and move weights, and of links",
    ),
    of_run(
        "edp_j_s",
        "Energy-delay product",
        "J s",
        "lower",
        lambda r: r.edp_j_s or None,
        shown=("report",),
        about="energy × end-to-end latency",
    ),
    of_run("compute_s", "Critical path: compute", "s", "lower", lambda r: r.attribution.compute_s),
    of_run("link_s", "Critical path: links", "s", "lower", lambda r: r.attribution.link_s),
    of_run("load_s", "Critical path: loading", "s", "lower", lambda r: r.attribution.load_s),
    of_run("staging_s", "Critical path: staging", "s", "lower", lambda r: r.attribution.staging_s),
    of_run("wait_s", "Critical path: waiting", "s", "lower", lambda r: r.attribution.wait_s),
    of_run("idle_s", "Critical path: no request", "s", None, lambda r: r.attribution.idle_s),
    of_run(
        "link_frac",
        "Critical path: part of links",
        "fraction",
        "lower",
        _finished(_link_frac),
        shown=("list",),
        short="Links’ part",
    ),
    of_run(
        "token_p50_s",
        "Between two tokens, median",
        "s",
        "lower",
        _between_tokens("p50"),
        shown=("list",),
        short="Token p50",
    ),
    of_run(
        "token_p95_s",
        "Between two tokens, 95 %",
        "s",
        "lower",
        _between_tokens("p95"),
        shown=("list",),
        short="Token p95",
    ),
    of_run(
        "token_p99_s",
        "Between two tokens, 99 %",
        "s",
        "lower",
        _between_tokens("p99"),
        shown=("list",),
        short="Token p99",
    ),
    of_run(
        "queue_p95_s",
        "Time in the queue, 95 %",
        "s",
        "lower",
        _over_requests("queue_s", "p95"),
        shown=("list",),
        short="Queue p95",
    ),
    of_run("ttft_p50_s", "Time to first token, median", "s", "lower", _over_requests("first_token_s", "p50")),
    of_run(
        "ttft_p95_s",
        "Time to first token, 95 %",
        "s",
        "lower",
        _over_requests("first_token_s", "p95"),
        shown=("list",),
        short="TTFT p95",
    ),
    of_run("ttft_p99_s", "Time to first token, 99 %", "s", "lower", _over_requests("first_token_s", "p99")),
    of_run("tpot_p50_s", "Time per token, median", "s", "lower", _over_requests("per_token_s", "p50")),
    of_run("tpot_p95_s", "Time per token, 95 %", "s", "lower", _over_requests("per_token_s", "p95")),
    of_run("tpot_p99_s", "Time per token, 99 %", "s", "lower", _over_requests("per_token_s", "p99")),
    of_run(
        "answer_p95_s",
        "Time to the whole answer, 95 %",
        "s",
        "lower",
        _over_requests("answer_s", "p95"),
        shown=("list",),
        short="Answer p95",
    ),
    of_run("answered_per_s", "Requests answered per second", "1/s", "higher", _load("answered_per_s")),
    of_run(
        "goodput_per_s",
        "Requests within objectives per second",
        "1/s",
        "higher",
        _load("goodput_per_s"),
        shown=("list",),
        short="Goodput",
    ),
    of_run(
        "attained_frac",
        "Requests within objectives",
        "fraction",
        "higher",
        _attained_frac,
        about="of all that arrived; 0.95 means that the objectives hold at the 95th percentile",
    ),
    of_run("mean_queue", "Mean queue", "", "lower", _load("mean_queue")),
    of_run("longest_queue", "Longest queue", "", "lower", _load("longest_queue")),
    of_run(
        "accepted_frac",
        "Accepted of the drafted tokens",
        "fraction",
        "higher",
        _of_drafts("accepted_share"),
        about="by methods that draft tokens",
    ),
    of_run(
        "accepted_per_verification",
        "Drafted tokens accepted per verification",
        "",
        "higher",
        _of_drafts("accepted_per_verification"),
        about="each verification gives one token more",
    ),
    of_run(
        "link_bytes",
        "Bytes on links",
        "B",
        "lower",
        lambda r: sum(link.bytes for link in r.links),
        shown=("list", "usual"),
        short="On links",
    ),
    of_run(
        "payload_bytes",
        "Payload on links",
        "B",
        "lower",
        lambda r: sum(link.payload_bytes for link in r.links),
        shown=("list",),
        short="Payload",
        about="bytes on all links without frames",
    ),
    of_run("flops", "Work of all devices", "FLOP", "lower", lambda r: sum(x.flops for x in r.devices)),
    of_run("busy_s", "Busy time of all devices", "s", "lower", lambda r: sum(x.busy_s for x in r.devices)),
    of_run(
        "peak_memory_bytes",
        "Largest peak memory",
        "B",
        "lower",
        lambda r: max((device.peak_memory_bytes for device in r.devices), default=None),
        shown=("list", "usual"),
        short="Memory",
        about="peak of the device that needs most",
    ),
    of_run(
        "recovery_s",
        "Recoveries: fault to next token",
        "s",
        "lower",
        _recovery("detect_s", "replan_s", "reload_s", "rebuild_s"),
    ),
    of_run("recovery_detect_s", "Recoveries: until it is noticed", "s", "lower", _recovery("detect_s")),
    of_run("recovery_replan_s", "Recoveries: planning again", "s", "lower", _recovery("replan_s")),
    of_run("recovery_reload_s", "Recoveries: loading weights", "s", "lower", _recovery("reload_s")),
    of_run("recovery_rebuild_s", "Recoveries: until the next token", "s", "lower", _recovery("rebuild_s")),
    of_run("tokens_lost", "Tokens lost", "", "lower", _tokens_lost),
    of_run("changes_missed", "Changes that never took place", "", "lower", _changes_missed),
    of_run(
        "predicted_latency_s",
        "Predicted latency",
        "s",
        None,
        _predicted_latency_s,
        shown=("list",),
        short="Predicted",
        about="end-to-end latency, with all changes known",
    ),
    of_run("max_rel_error", "Largest relative error", "", "lower", lambda r: r.correctness.max_rel_error),
    of_run("kl_mean", "KL divergence from the reference", "nat", "lower", lambda r: r.correctness.kl_mean),
    of_run(
        "top1_agreement",
        "Tokens the reference would choose too",
        "fraction",
        "higher",
        lambda r: r.correctness.top1_agreement,
    ),
    of_run(
        "changed_by_bits",
        "Tokens that rounded weights changed",
        "fraction",
        "lower",
        _changed_by_bits,
        about="of those emitted: what the model as it is would have chosen otherwise, after the same tokens",
    ),
    of_run(
        "error_of_bits",
        "Largest logit error of rounded weights",
        "",
        "lower",
        lambda r: found.max_abs_error if (found := r.correctness.rounded_weights) else None,
    ),
    of_run("correct", "Correct", "", "higher", lambda r: r.correctness.ok, trust=True),
    of_run("valid", "Valid", "", "higher", lambda r: r.fidelity.valid, trust=True),
    of_run(
        "latency_error",
        "Latency against its prediction",
        "fraction",
        None,
        lambda r: r.fidelity.latency_error,
        trust=True,
    ),
    of_run(
        "model_error_mean",
        "Operations against their model",
        "fraction",
        "lower",
        lambda r: r.fidelity.model_error_mean,
        trust=True,
    ),
    of_run(
        "dilation",
        "Dilation",
        "",
        "lower",
        lambda r: r.dilation if r.world in MEASURED else None,
        shown=("list",),
        short="D",
        about="real seconds per virtual second",
        trust=True,
    ),
    of_run(
        "advised_dilation",
        "Dilation at which it may be valid",
        "",
        None,
        lambda r: r.fidelity.enough_dilation,
        trust=True,
    ),
    of_device("busy_s", "Busy", "s", "lower", lambda device: device.busy_s),
    of_device("wait_s", "Waiting", "s", "lower", lambda device: device.wait_s),
    of_device("flops", "Work", "FLOP", "lower", lambda device: device.flops),
    of_device("peak_memory_bytes", "Peak memory", "B", "lower", lambda device: device.peak_memory_bytes),
    of_device("energy_j", "Energy", "J", "lower", lambda device: device.energy_j or None),
    of_link("bytes", "Bytes", "B", "lower", lambda link: link.bytes),
    of_link("payload_bytes", "Payload", "B", "lower", lambda link: link.payload_bytes),
    of_link("busy_s", "Busy", "s", "lower", lambda link: link.busy_s),
    of_link("energy_j", "Energy", "J", "lower", lambda link: link.energy_j or None),
    of_request("queue_s", "In the queue", "s", "lower", lambda request: request.queue_s),
    of_request("ttft_s", "Until the first token", "s", "lower", lambda request: request.ttft_s),
    of_request("per_token_s", "Each later token", "s", "lower", per_token_s),
    of_request("answered_s", "Until the whole answer", "s", "lower", lambda request: request.answered_s),
    of_token("token_s", "Time of each token after the first", "s", "lower", lambda took_s: took_s),
)

_INSTALLED, UNUSABLE = installed_metrics({metric.name for metric in BUILT_IN})
"""`UNUSABLE`: what is declared, and wrong."""

METRICS: tuple[Metric, ...] = (*BUILT_IN, *_INSTALLED.values())


def metrics_of_a(subject: Subject) -> tuple[Metric, ...]:
    return tuple(metric for metric in METRICS if metric.of == subject)


def title_of(subject: Subject, name: str) -> str:
    """The title of a figure, as the head of a table writes it."""
    return next(metric.title for metric in metrics_of_a(subject) if metric.name == name).lower()


def shown_in(place: Place) -> tuple[Metric, ...]:
    """The figures of runs that have a place there."""
    return tuple(metric for metric in METRICS if place in metric.shown)


def listed_figures(report: RunReport) -> dict[str, float]:
    """What lists of runs show of it; of a run that did not finish only how far it is to be trusted."""
    finished = report.outcome.kind == "finished"
    return values_of(report, [metric for metric in shown_in("list") if finished or metric.trust])


def values_of(item: Any, metrics: Sequence[Metric]) -> dict[str, float]:
    """The figures that `item` has, by name: a report, or a device, link or request of one."""
    found = {metric.name: metric.compute(item) for metric in metrics}
    return {name: float(value) for name, value in found.items() if value is not None}
