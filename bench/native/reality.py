"""Compares runs at native speed with their predictions for this host.

A paced run follows the device model, so it agrees with its prediction even if the model is wrong. A native
run takes what this host takes. Predictions come from a calibration: compute times from passes of made-up
models, none of which is run here, and the runtime's costs from runs over loopback. The speed of a shared
machine changes by several percent within minutes. Therefore the runs are carried out once after each round of
a calibration, and medians count on both sides: the model of the host is compared, not the host at two times.
What an earlier calibration says, as users have one, is in the summary beside it. The first request of each
run is not counted: in it, processes prepare kernels and memory for the first time.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from bench.native.reality_models import CATALOGUE, CONFIGS, model_of
from bench.tables.rows import Table
from emulator.calibration.known import calibration_file, known_calibration, measured
from emulator.calibration.runtime import Run, run_native
from emulator.calibration.shapes import PACKED_BITS, SHORT
from emulator.session.calls import call
from emulator.session.link_messages import with_link_messages
from engine.domain.calibration import Calibration
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
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
from engine.strategies.registry import by_rule

REQUESTS = 3
PROMPT_TOKENS, NEW_TOKENS = 128, 16
SINGLES = (*CATALOGUE, *CONFIGS)
PACKED = ("gpt2", "smollm2-135m-fp32", "llama-wide")
"""Models that also run on one device with weights in 8 and in 4 bits."""
DISTRIBUTED: tuple[tuple[str, tuple[int, ...], tuple[str, ...], tuple[float, ...]], ...] = (
    ("tinyllama-42m", (2, 4), ("megatron", "gpipe", "voltage"), (20e6, 100e6, 1e9)),
    ("tinyllama-42m", (2, 4), ("galaxy", "edgeshard", "lime"), (100e6, 1e9)),
    ("gpt2", (2,), ("megatron", "gpipe", "voltage"), (20e6, 1e9)),
)
"""Model, numbers of devices, strategies, rates: all combinations of a row are run."""


class Case(NamedTuple):
    """What is run: `bit_per_s` of every link is 0 for one device, which has none; `bits` of a weight, 0 for
    the model's own numbers.
    """

    model: str
    strategy: str
    devices: int
    bit_per_s: float = 0.0
    bits: int = 0


class Figures(NamedTuple):
    """Seconds of a run: its first token, each later one (0 for an encoder), and the whole."""

    first_s: float
    later_s: float
    total_s: float


class Compared(NamedTuple):
    """A case's prediction, its runs on this host, and its prediction by an earlier calibration, if there
    is one.
    """

    case: Case
    predicted: Figures
    measured: tuple[Figures, ...]
    before: Figures | None = None

    def median(self, field: str) -> float:
        seconds: list[float] = [getattr(figures, field) for figures in self.measured]
        return statistics.median(seconds)

    def error(self, field: str = "total_s") -> float:
        """The error of a figure: predicted / median of the measured - 1."""
        return self._error(self.predicted, field)

    def error_before(self, field: str) -> float:
        """The same of the prediction by the earlier calibration, which has to be there."""
        assert self.before is not None
        return self._error(self.before, field)

    def _error(self, predicted: Figures, field: str) -> float:
        predicted_s: float = getattr(predicted, field)
        return predicted_s / self.median(field) - 1 if self.median(field) else 0.0


def measure_reality() -> Table:
    known, age_s = known_calibration(), 0.0
    if known is not None:
        age_s = time.time() - calibration_file().stat().st_mtime
    singles = single_cases()
    groups = distributed_cases()
    turns: list[list[Figures]] = []

    def turn() -> None:
        use_host_kernels()  # those that the calibration has just chosen
        _say(f"turn {len(turns) + 1} of {len(singles) + sum(map(len, groups))} runs")
        turns.append([*over_loopback(singles), *(figures for cases in groups for figures in _linked(cases))])

    answer = measured(SHORT, progress=_say, between=turn)
    _say("messages over links")
    profile = with_link_messages(Calibration.parse(answer["calibration"], "calibration"), SHORT).profile
    compared = [
        Compared(
            case,
            predicted_figures(spec_of(case), profile),
            tuple(turn[number] for turn in turns),
            predicted_figures(spec_of(case), known.profile) if known else None,
        )
        for number, case in enumerate([*singles, *(case for cases in groups for case in cases)])
    ]
    return reality_table(compared, age_s)


def _say(what: str) -> None:
    sys.stderr.write(f"{what}\n")


def single_cases() -> list[Case]:
    packed = [Case(name, "single", 1, bits=bits) for name, bits in product(PACKED, PACKED_BITS)]
    return [*(Case(name, "single", 1) for name in SINGLES), *packed]


def distributed_cases() -> list[list[Case]]:
    """All cases of `DISTRIBUTED`, those of one number of devices and one rate together: they share links."""
    groups: dict[tuple[int, float], list[Case]] = {}
    for model, counts, strategies, rates in DISTRIBUTED:
        for devices, rate, strategy in product(counts, rates, strategies):
            groups.setdefault((devices, rate), []).append(Case(model, strategy, devices, rate))
    return [groups[key] for key in sorted(groups)]


def over_loopback(cases: Sequence[Case]) -> list[Figures]:
    return [figures_of(run_native(spec_of(case))) for case in cases]


def _linked(cases: Sequence[Case]) -> list[Figures]:
    return [Figures(*figures) for figures in call(over_links, [list(case) for case in cases])]


def over_links(cases: list[list[Any]]) -> list[Figures]:
    """Run all cases, which have one cluster, over its links; called in namespaces of its own."""
    from emulator.network.mininet_network import MininetNetwork

    use_host_kernels()
    specs = [spec_of(Case(*case)) for case in cases]
    with MininetNetwork(specs[0].cluster, 1.0) as network:
        return [figures_of(run_native(spec, network)) for spec in specs]


def spec_of(case: Case) -> RunSpec:
    """The run of a case: a request of 128 tokens and 16 new ones (fewer where the model has no more
    positions).
    """
    model = model_of(case.model).model_copy(update={"weight_bits": float(case.bits)})
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
        params=by_rule(case.strategy),  # every device takes part
        dilation="native",
    )


def figures_of(run: Run) -> Figures:
    return _figures(fold(run.prepared.spec, run.prepared.plan, run.trace, world="native"))


def predicted_figures(spec: RunSpec, profile: HostProfile) -> Figures:
    return _figures(predict_native(prepare(spec), profile).report)


def _figures(report: RunReport) -> Figures:
    """Means over the requests after the first."""
    counted = report.requests[1:]
    later = [after - before for request in counted for before, after in pairwise(request.token_s)]
    first_s = statistics.fmean(request.ttft_s for request in counted)
    later_s = statistics.fmean(later) if later else 0.0
    return Figures(first_s, later_s, first_s + sum(later) / len(counted))


def reality_table(compared: Sequence[Compared], age_s: float = 0.0) -> Table:
    """All cases; the summary by number of devices; the raw figures. `age_s`: of the earlier calibration."""
    rows = [
        (
            str(item.case.devices),
            item.case.model + (f", {item.case.bits} bits" if item.case.bits else ""),
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
        f"median of {len(compared[0].measured)} runs, one after each round of a calibration, and how far the "
        "prediction by that calibration is off it."
    )
    raw = json.dumps([{"case": item.case._asdict(), **_raw(item)} for item in compared], indent=1)
    return Table(title, columns, tuple(rows), summary=summary_table(compared, age_s), raw=raw)


def summary_table(compared: Sequence[Compared], age_s: float = 0.0) -> Table:
    """How far predictions of the whole, the first token and later ones are off, by number of devices."""
    rows = []
    for devices in dict.fromkeys(item.case.devices for item in compared):
        these = [item for item in compared if item.case.devices == devices]
        for field, name in (("total_s", "whole"), ("first_s", "first token"), ("later_s", "later tokens")):
            timed = [item for item in these if item.median(field)]
            if not timed:
                continue
            cells = _three(item.error(field) for item in timed)
            if all(item.before for item in timed):
                cells += _three(item.error_before(field) for item in timed)
            else:
                cells += ("–", "–", "–")
            rows.append((str(devices), str(len(timed)), name, *cells))
    title = (
        "How far predictions for this host are off runs at native speed: by a calibration that was measured "
        "in turn with the runs"
    )
    if any(item.before for item in compared):
        title += f", and by one that was {age_s / 60:.0f} minutes old when they began"
    earlier = ("earlier: median", "earlier: 95 %", "earlier: worst")
    columns = ("devices", "runs", "time", "median", "95 %", "worst", *earlier)
    return Table(f"{title}.", columns, tuple(rows))


def _three(errors: Iterable[float]) -> tuple[str, ...]:
    """Median, 95th percentile and worst of the absolute errors."""
    ordered = sorted(map(abs, errors))
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    return tuple(f"{error:.1%}" for error in (statistics.median(ordered), p95, ordered[-1]))


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
        "predicted_before": item.before._asdict() if item.before else None,
    }
