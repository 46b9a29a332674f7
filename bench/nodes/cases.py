"""The runs of `./loom bench nodes`, and their predictions from what boards and network say. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.network import Actual, PairMeasurement
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_s
from engine.reports.fold import fold
from engine.runs.as_measured import as_measured
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import by_rule

METHODS = ("megatron", "gpipe", "voltage", "galaxy")
MODELS = ("tinyllama-42m", "gpt2")
RATES = (50e6, 500e6)
REQUESTS = 4
PROMPT_TOKENS, NEW_TOKENS = 64, 12


class Case(NamedTuple):
    boards: tuple[str, ...]
    bit_per_s: float
    model: str
    method: str


class Figures(NamedTuple):
    """Seconds of a request: its first token, the mean of its later ones, and the whole."""

    first_s: float
    later_s: float
    total_s: float


class Compared(NamedTuple):
    case: Case
    drawn: Figures
    predicted: Figures
    measured: Figures
    links: str

    def off(self, field: str) -> float:
        found: float = getattr(self.predicted, field) / getattr(self.measured, field) - 1
        return found


def cases(boards: Sequence[str]) -> list[Case]:
    """Rates change least often: a cable's rate is that of the runs after it."""
    return [Case(tuple(boards), *rest) for rest in product(RATES, MODELS, METHODS)]


def cluster_of(rows: Sequence[Mapping[str, Any]], bit_per_s: float, delay_s: float = 0.0) -> ClusterSpec:
    """The palette's rows of some boards at one switch."""
    devices = tuple(DeviceSpec.model_validate(dict(row) | {"name": row["node"]}) for row in rows)
    return ClusterSpec(
        name="desk",
        source=devices[0].name,
        devices=devices,
        switches=(SwitchSpec(name="switch"),),
        links=tuple(
            LinkSpec(a=device.name, b="switch", bit_per_s=bit_per_s, delay_s=delay_s) for device in devices
        ),
    )


def request_of(case: Case, cluster: ClusterSpec) -> dict[str, Any]:
    return {
        "cluster": cluster.model_dump(mode="json", exclude_defaults=True),
        "model": case.model,
        "weights": "random",
        "strategy": case.method,
        "params": by_rule(case.method),
        "workload": {
            "prompt_tokens": PROMPT_TOKENS,
            "new_tokens": NEW_TOKENS,
            "requests": REQUESTS,
        },
        "dilation": "nodes",
    }


def measured_in(report: RunReport) -> Actual:
    """What the report states of its boards' network; their rows are those of its cluster."""
    ranks = {device.name: rank for rank, device in enumerate(report.spec.cluster.devices)}
    pairs = tuple(
        PairMeasurement(
            ranks[pair.sender],
            ranks[pair.receiver],
            pair.measured_bit_per_s,
            pair.measured_delay_s,
            pair.measured_loss_frac,
        )
        for pair in report.pairs
    )
    return Actual(pairs, (None,) * len(ranks))


def figures_of(report: RunReport) -> Figures:
    """Medians over the requests after the first, in which processes prepare kernels and memory."""
    counted = report.requests[1:]
    later = [after - before for request in counted for before, after in pairwise(request.token_s)]
    first_s = statistics.median(request.ttft_s for request in counted)
    later_s = statistics.median(later)
    return Figures(first_s, later_s, first_s + later_s * (NEW_TOKENS - 1))


def compare(case: Case, report: RunReport) -> Compared:
    actual, spec = measured_in(report), report.spec
    found = spec.model_copy(update={"cluster": as_measured(spec.cluster, actual)})
    rate = statistics.median(pair.bit_per_s for pair in actual.pairs)
    delay_s = statistics.median(pair.delay_s for pair in actual.pairs)
    links = f"{human(rate, 'bit/s')}, {human_s(delay_s)}"
    return Compared(case, figures_of(shaped(spec)), figures_of(shaped(found)), figures_of(report), links)


def shaped(spec: RunSpec) -> RunReport:
    """The prediction of `spec` over cables that `Cable.shape` shapes: their buckets let the first bytes of a
    message through at once.
    """
    prepared = prepare(spec)
    trace, outcome = simulate(prepared, shaped=True)
    return fold(prepared.spec, prepared.plan, trace, world="predicted", outcome=outcome)


def three(errors: Iterable[float]) -> tuple[str, str, str]:
    """Median, 95th percentile and worst of the absolute errors."""
    ordered = sorted(map(abs, errors))
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    return f"{statistics.median(ordered):.1%}", f"{p95:.1%}", f"{ordered[-1]:.1%}"
