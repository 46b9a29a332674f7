"""Compares runs at native speed with their predictions for this host.

A paced run follows the device model, so it agrees with its prediction even if the model is wrong. A native
run takes what this host takes. Predictions come from the calibration (`loom calibrate`): compute times from
passes of made-up models, none of which is measured here, and the runtime's costs from runs over loopback.
Repeats are interleaved, because the speed of a shared machine changes within minutes; medians count. The
first request of each run is not counted: in it, processes prepare kernels and memory for the first time.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from emulator.bench.reality_models import CATALOGUE, CONFIGS, model_of
from emulator.bench.rows import Table
from emulator.calibration.known import known_calibration
from emulator.calibration.runtime import Run, run_native
from emulator.session.calls import call
from engine.cli.command import Environment
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.errors import HostError
from engine.domain.host_times import HostProfile
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_s
from engine.domain.workload import Workload
from engine.ops.sizes import num_parameters
from engine.reports.fold import fold
from engine.runs.host_kernels import use_host_kernels
from engine.runs.native import predict_native
from engine.runs.predict import prepare

REPEATS = 2
REQUESTS = 3
PROMPT_TOKENS, NEW_TOKENS = 128, 16
SINGLES = (*CATALOGUE, *CONFIGS)
DISTRIBUTED: tuple[tuple[str, tuple[int, ...], tuple[str, ...], tuple[float, ...]], ...] = (
    ("tinyllama-42m", (2, 4), ("megatron", "gpipe", "voltage"), (20e6, 100e6, 1e9)),
    ("tinyllama-42m", (2, 4), ("galaxy", "edgeshard", "lime"), (100e6, 1e9)),
    ("gpt2", (2,), ("megatron", "gpipe", "voltage"), (20e6, 1e9)),
)
"""Model, numbers of devices, strategies, rates: all combinations of a row are run."""


class Case(NamedTuple):
    """What is run: `bit_per_s` of every link is 0 for one device, which has none."""

    model: str
    strategy: str
    devices: int
    bit_per_s: float = 0.0


class Figures(NamedTuple):
    """Seconds of a run: its first token, each later one (0 for an encoder), and the whole."""

    first_s: float
    later_s: float
    total_s: float


class Compared(NamedTuple):
    """A case's prediction, and its runs on this host."""

    case: Case
    predicted: Figures
    measured: tuple[Figures, ...]

    def median(self, field: str) -> float:
        seconds: list[float] = [getattr(figures, field) for figures in self.measured]
        return statistics.median(seconds)

    def error(self, field: str = "total_s") -> float:
        """predicted / median of the measured - 1."""
        predicted_s: float = getattr(self.predicted, field)
        return predicted_s / self.median(field) - 1 if self.median(field) else 0.0


def measure_reality(environment: Environment) -> Table:
    profile = _profile()
    singles = [Case(name, "single", 1) for name in SINGLES]
    compared = _interleaved(singles, profile, over_loopback)
    for cases in distributed_cases():
        compared += _interleaved(cases, profile, None)
    return reality_table(compared)


def distributed_cases() -> list[list[Case]]:
    """All cases of `DISTRIBUTED`, those of one number of devices and one rate together: they share links."""
    groups: dict[tuple[int, float], list[Case]] = {}
    for model, counts, strategies, rates in DISTRIBUTED:
        for devices, rate, strategy in product(counts, rates, strategies):
            groups.setdefault((devices, rate), []).append(Case(model, strategy, devices, rate))
    return [groups[key] for key in sorted(groups)]


def _profile() -> HostProfile:
    known = known_calibration()
    if known is None:
        raise HostError("bench reality compares with this host's calibration: run ./loom calibrate first.")
    use_host_kernels()
    return known.profile


def _interleaved(
    cases: Sequence[Case],
    profile: HostProfile,
    run: Callable[[Sequence[Case]], list[Figures]] | None,
) -> list[Compared]:
    """All cases one after the other, `REPEATS` times; without `run` over emulated links in one session."""
    if run is None:
        answers = call(over_links, [list(case) for case in cases], REPEATS)
    else:
        answers = [run(cases) for _ in range(REPEATS)]
    turns = [[Figures(*figures) for figures in turn] for turn in answers]
    return [
        Compared(case, predicted_figures(spec_of(case), profile), tuple(turn[number] for turn in turns))
        for number, case in enumerate(cases)
    ]


def over_loopback(cases: Sequence[Case]) -> list[Figures]:
    return [figures_of(run_native(spec_of(case))) for case in cases]


def over_links(cases: list[list[Any]], repeats: int) -> list[list[Figures]]:
    """Called in namespaces of its own: run all cases, which have one cluster, so often over its links."""
    from emulator.network.mininet_network import MininetNetwork

    use_host_kernels()
    specs = [spec_of(Case(*case)) for case in cases]
    with MininetNetwork(specs[0].cluster, 1.0) as network:
        return [[figures_of(run_native(spec, network)) for spec in specs] for _ in range(repeats)]


def spec_of(case: Case) -> RunSpec:
    """A request of 128 tokens and 16 new ones (fewer where the model has no more positions)."""
    model = model_of(case.model)
    names = [f"d{rank}" for rank in range(case.devices)]
    cluster = ClusterSpec(
        name="reality",
        source="d0",
        devices=tuple(
            DeviceSpec(name=name, flop_per_s=1e11, memory_bytes=8e9, memory_byte_per_s=1e10) for name in names
        ),
        switches=(SwitchSpec(name="hub"),) if case.devices > 1 else (),
        links=tuple(LinkSpec(a=name, b="hub", bit_per_s=case.bit_per_s) for name in names)
        if case.devices > 1
        else (),
    )
    return RunSpec(
        cluster=cluster,
        model=model,
        workload=Workload(
            prompt_tokens=PROMPT_TOKENS if model.reads_text else None,
            new_tokens=NEW_TOKENS if model.has_head else 0,
            requests=REQUESTS,
        ),
        strategy=case.strategy,
        dilation="native",
    )


def figures_of(run: Run) -> Figures:
    return _figures(fold(run.prepared.spec, run.prepared.plan, run.trace, world="real"))


def predicted_figures(spec: RunSpec, profile: HostProfile) -> Figures:
    return _figures(predict_native(prepare(spec), profile).report)


def _figures(report: RunReport) -> Figures:
    """Means over the requests after the first."""
    counted = report.requests[1:]
    later = [after - before for request in counted for before, after in pairwise(request.token_s)]
    first_s = statistics.fmean(request.ttft_s for request in counted)
    later_s = statistics.fmean(later) if later else 0.0
    return Figures(first_s, later_s, first_s + sum(later) / len(counted))


def reality_table(compared: Sequence[Compared]) -> Table:
    """All cases; the summary by number of devices; the raw figures."""
    rows = [
        (
            str(item.case.devices),
            item.case.model,
            human(num_parameters(model_of(item.case.model)), ""),
            item.case.strategy,
            human(item.case.bit_per_s, "bit/s") if item.case.bit_per_s else "–",
            *_cells(item, "first_s"),
            *_cells(item, "later_s"),
            *_cells(item, "total_s"),
        )
        for item in compared
    ]
    columns = ("devices", "model", "parameters", "strategy", "links", *_columns())
    title = (
        f"A request of {PROMPT_TOKENS} tokens and {NEW_TOKENS} new ones at native speed, one thread each: "
        f"median of {REPEATS} interleaved runs, and how far the prediction for this host is off it."
    )
    raw = json.dumps([{"case": item.case._asdict(), **_raw(item)} for item in compared], indent=1)
    return Table(title, columns, tuple(rows), summary=summary_table(compared), raw=raw)


def summary_table(compared: Sequence[Compared]) -> Table:
    """How far predictions of the whole, the first token and later ones are off, by number of devices."""
    rows = []
    for devices in dict.fromkeys(item.case.devices for item in compared):
        these = [item for item in compared if item.case.devices == devices]
        for field, name in (("total_s", "whole"), ("first_s", "first token"), ("later_s", "later tokens")):
            errors = sorted(abs(item.error(field)) for item in these if item.median(field))
            if not errors:
                continue
            p95 = errors[round(0.95 * (len(errors) - 1))]
            figures = (statistics.median(errors), p95, errors[-1])
            rows.append((str(devices), str(len(errors)), name, *(f"{error:.1%}" for error in figures)))
    title = "How far predictions for this host are off runs at native speed."
    return Table(title, ("devices", "runs", "time", "median", "95 %", "worst"), tuple(rows))


def _columns() -> tuple[str, ...]:
    return tuple(cell for name in ("first token", "later ones", "whole") for cell in (name, "off"))


def _cells(item: Compared, field: str) -> tuple[str, str]:
    if not item.median(field):
        return "–", "–"
    return human_s(item.median(field)), f"{item.error(field):+.1%}"


def _raw(item: Compared) -> dict[str, Any]:
    return {
        "predicted": item.predicted._asdict(),
        "measured": [figures._asdict() for figures in item.measured],
    }
