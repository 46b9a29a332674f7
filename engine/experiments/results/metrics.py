"""The metrics of experiments: one table of names, titles and units, and their values in a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

from engine.domain.errors import SpecError
from engine.domain.report import RunReport
from engine.domain.scenario import DropDevice, FreezeDevice
from engine.domain.values import Value
from engine.experiments.results.missed import missed_changes
from engine.reports.compare import METRICS as COMPARED

MAX_OF_METHOD = 256
MAX_ITEMS = 32
MAX_DEVICES = 64
MAX_LINKS = 64
"""Most numbers of a method's own report, items of one list in it, devices, and directions of links, that a
result keeps.
"""


class Metric(Value):
    """A number of every result. `better` is None where neither more nor less is better."""

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher"] | None = None


NAMES = {
    "total_s": "latency_s",
    "first_token_s": "ttft_s",
    "per_token_s": "tpot_s",
    "tokens_per_s": "tokens_per_s",
    "bytes": "link_bytes",
    "payload_bytes": "payload_bytes",
    "peak_memory_bytes": "peak_memory_bytes",
    "energy_j": "energy_j",
    "edp_j_s": "edp_j_s",
    "flops": "flops",
    "busy_s": "busy_s",
    "compute_s": "compute_s",
    "link_s": "link_s",
    "load_s": "load_s",
    "staging_s": "staging_s",
    "wait_s": "wait_s",
    "idle_s": "idle_s",
    "queue_p95_s": "queue_p95_s",
    "first_token_p50_s": "ttft_p50_s",
    "first_token_p95_s": "ttft_p95_s",
    "first_token_p99_s": "ttft_p99_s",
    "per_token_p50_s": "tpot_p50_s",
    "per_token_p95_s": "tpot_p95_s",
    "per_token_p99_s": "tpot_p99_s",
    "answer_p95_s": "answer_p95_s",
    "answered_per_s": "answered_per_s",
    "goodput_per_s": "goodput_per_s",
    "mean_queue": "mean_queue",
    "recovery_s": "recovery_s",
    "predicted_total_s": "predicted_latency_s",
    "max_rel_error": "max_rel_error",
    "kl_mean": "kl_mean",
    "top1_agreement": "top1_agreement",
}
"""Metric here → the same one of `reports/compare.py`, whose title and unit it has."""


def _yes(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _recovery(part: str) -> Callable[[RunReport], float | None]:
    """Seconds of one part of all recoveries together; None without one, or where a part is not known."""

    def of(report: RunReport) -> float | None:
        parts = [getattr(one, part) for one in report.recoveries]
        return sum(parts) if parts and None not in parts else None

    return of


def tokens_lost(report: RunReport) -> float | None:
    """Tokens that were asked for and did not come; None for a run that lost no device."""
    if not any(isinstance(change, DropDevice | FreezeDevice) for change in report.spec.scenario.changes):
        return None
    workload = report.spec.workload
    came = sum(len(request.token_s) for request in report.requests)
    return float(max(0, workload.requests * workload.new_tokens - came))


RECOVERIES = tuple(
    (
        Metric(name=f"recovery_{name}_s", title=f"Recoveries: {title}", unit="s", better="lower"),
        _recovery(f"{name}_s"),
    )
    for name, title in (
        ("detect", "until the failure is noticed"),
        ("replan", "planning again"),
        ("reload", "loading weights"),
        ("rebuild", "until the next token"),
    )
)
"""The parts of `recovery_s`, as the report has them."""

OWN: tuple[tuple[Metric, Callable[[RunReport], float | None]], ...] = (
    (
        Metric(name="latency_error", title="Latency against its prediction", unit="fraction"),
        lambda report: report.fidelity.latency_error,
    ),
    (
        Metric(
            name="model_error_mean", title="Operations against their model", unit="fraction", better="lower"
        ),
        lambda report: report.fidelity.model_error_mean,
    ),
    (Metric(name="valid", title="Valid", unit="", better="higher"), lambda r: _yes(r.fidelity.valid)),
    (Metric(name="correct", title="Correct", unit="", better="higher"), lambda r: _yes(r.correctness.ok)),
    (
        Metric(name="advised_dilation", title="Dilation at which it may be valid", unit=""),
        lambda report: report.fidelity.enough_dilation,
    ),
    (Metric(name="dilation", title="Dilation", unit="", better="lower"), lambda report: report.dilation),
)

CHANGES: tuple[tuple[Metric, Callable[[RunReport], float | None]], ...] = (
    (Metric(name="tokens_lost", title="Tokens lost", unit="", better="lower"), tokens_lost),
    (
        Metric(name="changes_missed", title="Changes that never took place", unit="", better="lower"),
        lambda report: float(len(missed_changes(report))) if report.spec.scenario.changes else None,
    ),
)

ABOUT_VALIDITY = frozenset(row.name for row, _ in OWN)
"""Metrics that say how far a run is to be trusted: those of runs that are not valid count, too."""

_COMPARED = {row.name: row for row in COMPARED}

METRICS: tuple[Metric, ...] = (
    *(
        Metric(name=name, title=_COMPARED[old].title, unit=_COMPARED[old].unit, better=_COMPARED[old].better)
        for name, old in NAMES.items()
    ),
    *(row for row, _ in RECOVERIES),
    *(row for row, _ in CHANGES),
    *(row for row, _ in OWN),
)
"""Besides, there are `peak_memory_bytes[NAME]` and `busy_s[NAME]` of a device, `bytes[FROM--TO]` of a
direction of a link that carried any, and `method.…`: the numbers in
the method's own report, by their path in it, as `method.plans.0.blocks.0.ratio_s`."""

_BY_NAME: Mapping[str, Metric] = MappingProxyType({row.name: row for row in METRICS})
OF_A_DEVICE = re.compile(r"(peak_memory_bytes|busy_s)\[([a-z][a-z0-9_-]*)\]")
OF_A_LINK = re.compile(r"bytes\[([a-z][a-z0-9_-]*)--([a-z][a-z0-9_-]*)\]")
OF_A_METHOD = re.compile(r"method(\.[A-Za-z0-9_-]+)+")
ENDS = (("_s", "s"), ("_bytes", "B"), ("_j", "J"), ("_frac", "fraction"))


def metric(name: str) -> Metric:
    """Raises `SpecError` for an unknown one; the sentence names the known ones."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if found := OF_A_DEVICE.fullmatch(name):
        general = _BY_NAME[found[1]]
        return general.model_copy(update={"name": name, "title": f"{general.title} of {found[2]}"})
    if found := OF_A_LINK.fullmatch(name):
        title = f"{_BY_NAME['bytes'].title} from {found[1]} to {found[2]}"
        return _BY_NAME["bytes"].model_copy(update={"name": name, "title": title})
    if OF_A_METHOD.fullmatch(name):
        last = name.rpartition(".")[2]
        unit = next((unit for end, unit in ENDS if last.endswith(end)), "")
        return Metric(name=name, title=name.removeprefix("method.").replace("_", " "), unit=unit)
    raise SpecError(
        f"metric is {name}, which is unknown: there are {', '.join(_BY_NAME)}, peak_memory_bytes[DEVICE], "
        "busy_s[DEVICE], bytes[FROM--TO] and method.PATH."
    )


def metrics_of(report: RunReport) -> dict[str, float]:
    """All metrics that the report has, by name. Those that make no sense there are left out."""
    found: dict[str, float | None] = {name: _COMPARED[old].of(report) for name, old in NAMES.items()}
    if not any(request.token_s for request in report.requests):  # an encoder's whole answer
        found |= {"per_token_s": None, "tokens_per_s": None}
    found |= {row.name: of(report) for row, of in (*RECOVERIES, *CHANGES, *OWN)}
    for device in report.devices[:MAX_DEVICES]:
        found[f"peak_memory_bytes[{device.name}]"] = float(device.peak_memory_bytes)
        found[f"busy_s[{device.name}]"] = device.busy_s
    for link in [link for link in report.links if link.bytes][:MAX_LINKS]:
        ends = (link.a, link.b) if link.direction == "forward" else (link.b, link.a)
        found[f"bytes[{'--'.join(ends)}]"] = float(link.bytes)
    if report.method is not None:
        numbers = _numbers(report.method.model_dump(mode="json"), "method")
        found |= dict(pair for pair, _ in zip(numbers, range(MAX_OF_METHOD), strict=False))
    return {name: float(value) for name, value in found.items() if value is not None}


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Every number below `value` with its path, level by level; of a list the first ones."""
    level = [(path, value)]
    while level:
        below: list[tuple[str, Any]] = []
        for place, item in level:
            if isinstance(item, bool | int | float):
                yield place, float(item)
            elif isinstance(item, dict):
                below += [(f"{place}.{key}", inner) for key, inner in item.items()]
            elif isinstance(item, list):
                below += [(f"{place}.{index}", inner) for index, inner in enumerate(item[:MAX_ITEMS])]
        level = below
