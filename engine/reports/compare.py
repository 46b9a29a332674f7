"""Compares reports: which fields of their specs differ, and how their figures differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from engine.domain.errors import SpecError
from engine.domain.report import LayerReport, RunReport
from engine.domain.values import Value
from engine.reports.cautions import Caution, cautions_of

FEWEST, MOST = 2, 50
Better = Literal["lower", "higher"]


class RunColumn(Value):
    """The run of a column; `cautions` are about its comparison with the baseline."""

    name: str
    world: Literal["simulated", "real"]
    outcome: str
    correct: bool | None
    valid: bool | None
    cautions: tuple[Caution, ...] = ()


class ParamRow(Value):
    """One field of the specs by its flat path; None where a run has no such field."""

    path: str
    values: tuple[Any, ...]
    differs: bool


class MetricRow(Value):
    """One figure. `deltas` are fractions of the baseline's value: 0.1 is 10 % more; None if undefined."""

    name: str
    title: str
    unit: str
    values: tuple[float | None, ...]
    deltas: tuple[float | None, ...]
    better: Better | None


class LatencySeries(Value):
    """Seconds per token of a run's first request, in order; the first is its time to first token."""

    run: int
    token_s: tuple[float, ...]


class Timeline(Value):
    """A run's first forward pass, layer by layer, from its first computation (0)."""

    run: int
    layers: tuple[LayerReport, ...]


class Comparison(Value):
    baseline: int
    runs: tuple[RunColumn, ...]
    params: tuple[ParamRow, ...]
    metrics: tuple[MetricRow, ...]
    series: tuple[LatencySeries, ...]
    timelines: tuple[Timeline, ...]


class Metric(NamedTuple):
    name: str
    title: str
    unit: str
    better: Better | None
    of: Callable[[RunReport], float | None]


def _if_finished(value: Callable[[RunReport], float | None]) -> Callable[[RunReport], float | None]:
    """`value`, or None for a run that did not finish."""
    return lambda report: value(report) if report.outcome.kind == "finished" else None


def _recovery_s(report: RunReport) -> float | None:
    """Seconds of all recoveries together; None without one, or if no token followed one of them."""
    times = [
        None if one.rebuild_s is None else one.detect_s + one.replan_s + one.reload_s + one.rebuild_s
        for one in report.recoveries
    ]
    known = [time_s for time_s in times if time_s is not None]
    return sum(known) if known and len(known) == len(times) else None


def _load(field: str) -> Callable[[RunReport], float | None]:
    """A figure of the load; None for a workload without a queue."""
    return lambda report: None if report.load is None else getattr(report.load, field)


def _of_load(field: str, percentile: str) -> Callable[[RunReport], float | None]:
    """A percentile over requests; None for a workload without a queue."""

    def value(report: RunReport) -> float | None:
        over = getattr(report.load, field) if report.load else None
        return None if over is None else getattr(over, percentile)

    return value


METRICS: tuple[Metric, ...] = (
    Metric("latency_s", "End-to-end latency", "s", "lower", _if_finished(lambda r: r.latency_s)),
    Metric("ttft_s", "Time to first token", "s", "lower", _if_finished(lambda r: r.ttft_s)),
    Metric("tpot_s", "Time per output token", "s", "lower", _if_finished(lambda r: r.tpot_s or None)),
    Metric("tokens_per_s", "Tokens per second", "1/s", "higher", _if_finished(lambda r: r.tokens_per_s)),
    Metric("compute_s", "Critical path: compute", "s", "lower", lambda r: r.attribution.compute_s),
    Metric("link_s", "Critical path: links", "s", "lower", lambda r: r.attribution.link_s),
    Metric("load_s", "Critical path: loading", "s", "lower", lambda r: r.attribution.load_s),
    Metric("staging_s", "Critical path: staging", "s", "lower", lambda r: r.attribution.staging_s),
    Metric("wait_s", "Critical path: waiting", "s", "lower", lambda r: r.attribution.wait_s),
    Metric("idle_s", "Critical path: idle", "s", None, lambda r: r.attribution.idle_s),
    Metric("queue_p95_s", "Time in the queue, 95 %", "s", "lower", _of_load("queue_s", "p95")),
    Metric("ttft_p50_s", "Time to first token, median", "s", "lower", _of_load("first_token_s", "p50")),
    Metric("ttft_p95_s", "Time to first token, 95 %", "s", "lower", _of_load("first_token_s", "p95")),
    Metric("ttft_p99_s", "Time to first token, 99 %", "s", "lower", _of_load("first_token_s", "p99")),
    Metric("tpot_p50_s", "Time per token, median", "s", "lower", _of_load("per_token_s", "p50")),
    Metric("tpot_p95_s", "Time per token, 95 %", "s", "lower", _of_load("per_token_s", "p95")),
    Metric("tpot_p99_s", "Time per token, 99 %", "s", "lower", _of_load("per_token_s", "p99")),
    Metric("answer_p95_s", "Time to the whole answer, 95 %", "s", "lower", _of_load("answer_s", "p95")),
    Metric("answered_per_s", "Requests answered per second", "1/s", "higher", _load("answered_per_s")),
    Metric("goodput_per_s", "Requests within objectives per second", "1/s", "higher", _load("goodput_per_s")),
    Metric("mean_queue", "Mean queue", "", "lower", _load("mean_queue")),
    Metric("link_bytes", "Bytes on links", "B", "lower", lambda r: sum(x.bytes for x in r.links)),
    Metric(
        "payload_bytes", "Payload on links", "B", "lower", lambda r: sum(x.payload_bytes for x in r.links)
    ),
    Metric("flops", "Work of all devices", "FLOP", "lower", lambda r: sum(x.flops for x in r.devices)),
    Metric("busy_s", "Busy time of all devices", "s", "lower", lambda r: sum(x.busy_s for x in r.devices)),
    Metric("energy_j", "Energy", "J", "lower", lambda r: r.energy_j or None),
    Metric("edp_j_s", "Energy-delay product", "J s", "lower", lambda r: r.edp_j_s or None),
    Metric(
        "peak_memory_bytes",
        "Largest peak memory",
        "B",
        "lower",
        lambda r: max((x.peak_memory_bytes for x in r.devices), default=None),
    ),
    Metric("recovery_s", "Recoveries: fault to next token", "s", "lower", _recovery_s),
    Metric(
        "predicted_latency_s",
        "Predicted latency",
        "s",
        None,
        lambda r: known.latency_s if (known := r.predictions.with_all_changes_known) else None,
    ),
    Metric("max_rel_error", "Largest relative error", "", "lower", lambda r: r.correctness.max_rel_error),
    Metric("kl_mean", "KL divergence from the reference", "nat", "lower", lambda r: r.correctness.kl_mean),
    Metric(
        "top1_agreement",
        "Tokens the reference would choose too",
        "fraction",
        "higher",
        lambda r: r.correctness.top1_agreement,
    ),
)


def compare(reports: Sequence[RunReport], baseline: int = 0) -> Comparison:
    """`baseline` is the index of the run that deltas refer to. Raises `SpecError` on a wrong number."""
    if not FEWEST <= len(reports) <= MOST:
        sentence = f"Got {len(reports)} runs to compare, expected {FEWEST} to {MOST}."
        raise SpecError(sentence, [("ids", f"expected {FEWEST} to {MOST} runs")])
    if not 0 <= baseline < len(reports):
        sentence = f"The baseline is {baseline}, expected 0 to {len(reports) - 1}."
        raise SpecError(sentence, [("baseline", "is not among the runs")])
    rows = [_metric_row(metric, reports, baseline) for metric in METRICS]
    return Comparison(
        baseline=baseline,
        runs=tuple(
            RunColumn(
                name=report.spec.name or f"{report.spec.strategy} on {report.spec.cluster.name}",
                world=report.world,
                outcome=report.outcome.kind,
                correct=report.correctness.ok,
                valid=report.fidelity.valid,
                cautions=() if report is reports[baseline] else cautions_of(report, reports[baseline]),
            )
            for report in reports
        ),
        params=compare_params(reports),
        metrics=tuple(row for row in rows if any(value is not None for value in row.values)),
        series=tuple(LatencySeries(run=i, token_s=token_gaps(report)) for i, report in enumerate(reports)),
        timelines=tuple(Timeline(run=i, layers=aligned(report)) for i, report in enumerate(reports)),
    )


def compare_params(reports: Sequence[RunReport]) -> tuple[ParamRow, ...]:
    """Every field of the specs and the world, without the names of runs.

    A field differs if its values do or if only some runs have it; false, 0 and "" are values.
    """
    flats = [_asked(report) for report in reports]
    paths = list(dict.fromkeys(path for flat in flats for path in flat))
    rows = []
    for path in paths:
        values = tuple(flat.get(path) for flat in flats)
        differs = any(path not in flat for flat in flats) or any(not _same(values[0], v) for v in values[1:])
        rows.append(ParamRow(path=path, values=values, differs=differs))
    return tuple(rows)


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """`{"a": [{"b": 1}]}` → `{"a[0].b": 1}`; empty lists and objects stay as values.

    List items with a name are labelled by it, so that a device that moved in the list is the same device.
    """
    if isinstance(value, dict) and value:
        items = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        labels = [_label(item) or str(index) for index, item in enumerate(value)]
        if len(set(labels)) < len(labels):
            labels = [str(index) for index in range(len(value))]
        items = [(f"{path}[{label}]", item) for label, item in zip(labels, value, strict=True)]
    else:
        return {path: value}
    flat: dict[str, Any] = {}
    for item_path, item in items:
        flat |= flatten(item, item_path)
    return flat


def token_gaps(report: RunReport) -> tuple[float, ...]:
    if not report.requests or not report.requests[0].token_s:
        return ()
    times = report.requests[0].token_s
    return (times[0], *(b - a for a, b in pairwise(times)))


def aligned(report: RunReport) -> tuple[LayerReport, ...]:
    """The layers with times relative to the first start."""
    zero_s = min((layer.start_s for layer in report.layers), default=0.0)
    return tuple(
        layer.model_copy(update={"start_s": layer.start_s - zero_s, "end_s": layer.end_s - zero_s})
        for layer in report.layers
    )


def _asked(report: RunReport) -> dict[str, Any]:
    data = report.spec.model_dump(mode="json", exclude={"name"})
    data["profile"] = report.spec.profile and report.spec.profile.host  # its times vary
    data["scenario"] = report.scenario.model_dump(mode="json")  # as it happened, live changes included
    return {"world": report.world, **flatten(data)}


def _label(item: Any) -> str:
    if isinstance(item, dict):
        if "name" in item:
            return str(item["name"])
        if "a" in item and "b" in item:
            return f"{item['a']}--{item['b']}"
    return ""


def _same(a: Any, b: Any) -> bool:
    """Whether both are equal and both or neither are booleans (in Python, `0 == False`)."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _metric_row(metric: Metric, reports: Sequence[RunReport], baseline: int) -> MetricRow:
    values = tuple(metric.of(report) for report in reports)
    base = values[baseline]
    deltas = tuple(
        None
        if value is None or base is None or (base == 0 and value != 0)
        else 0.0
        if value == base
        else (value - base) / abs(base)
        for value in values
    )
    return MetricRow(
        name=metric.name,
        title=metric.title,
        unit=metric.unit,
        better=metric.better,
        values=values,
        deltas=deltas,
    )
