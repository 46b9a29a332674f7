"""Measures where the time of one decode step goes at native speed, beside the least that each
part can take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.native.native import needed_calibration, spec_at
from bench.native.native_bounds import NEW_TOKENS, Place
from bench.tables.rows import Table
from emulator.session.client import emulate
from engine.domain.events import Event
from engine.domain.plan import Plan
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.domain.units import BITS_PER_BYTE
from engine.ops.sizes import weight_bytes

STEPS: tuple[tuple[str, Place, dict[str, Any]], ...] = (
    ("single", Place(1, 0.0), {}),
    ("gpipe", Place(2, 100e6), {"head": "last"}),
    ("megatron", Place(2, 100e6), {}),
    ("megatron", Place(2, 100e6), {"head": "columns", "embedding": "auto"}),
    ("megatron", Place(4, 100e6), {"head": "columns", "embedding": "auto"}),
)
PARTS = ("step", "arithmetic", "sending", "waiting", "the rest")


class StepProfile(NamedTuple):
    """Mean seconds of a decode step, by part, as the source spends them, and bounds of two of the parts.

    Arithmetic comes first, then sending, then waiting: a part does not count what is in one before it.

    `arithmetic_bound_s`: the source's weights read once; `link_bound_s`: what it sends or receives in a step,
    whichever is more, at the rate of its link.
    """

    step_s: float
    arithmetic_s: float
    sending_s: float
    waiting_s: float
    arithmetic_bound_s: float
    link_bound_s: float

    @property
    def rest_s(self) -> float:
        return self.step_s - self.arithmetic_s - self.sending_s - self.waiting_s


def measure_native_step() -> Table:
    known = needed_calibration()
    rows, columns = [list[str]() for _ in PARTS], [""]
    for strategy, place, params in STEPS:
        spec = spec_at(place, strategy, params)
        events: list[Event] = []
        report = emulate(spec, events.extend)
        spans = [event for event in events if isinstance(event, Span)]
        found = profile_of(spec, report, spans, known.profile.memory_byte_per_s)
        words = "".join(f", {key} {value}" for key, value in params.items())
        columns.append(f"{strategy}{words}, {place.title}")
        for row, cell in zip(rows, _cells(found), strict=True):
            row.append(cell)
    title = (
        "One decode step as the source spends it, ms in the mean of a run, and in brackets the least that "
        "the part can take: arithmetic reads the source's weights once, waiting lasts as long as its link "
        "carries the step's bytes. Processes beyond the cores wait for each other, too."
    )
    return Table(title, tuple(columns), tuple((p, *row) for p, row in zip(PARTS, rows, strict=True)))


def profile_of(
    spec: RunSpec, report: RunReport, spans: Sequence[Span], memory_byte_per_s: float
) -> StepProfile:
    """The profile of a finished run of one request. `spans` are those of all devices."""
    assert report.plan is not None, "a finished run has a plan"
    steps, source = NEW_TOKENS - 1, spec.cluster.source_rank
    name = spec.cluster.devices[source].name
    mine = [span for span in spans if span.device == name and span.token > 0]

    def covered_s(*kinds: str) -> float:
        """Seconds per step in which at least one span of these kinds lasts."""
        return _covered_s([(span.start_s, span.end_s) for span in mine if span.kind in kinds]) / steps

    arithmetic_s, active_s = covered_s("compute"), covered_s("compute", "send")
    directions = [sum(span.bytes for span in mine if span.kind == kind) / steps for kind in ("send", "recv")]
    rate = min(link.bit_per_s for link in spec.cluster.links)
    return StepProfile(
        report.tpot_s,
        arithmetic_s,
        active_s - arithmetic_s,
        covered_s("compute", "send", "wait") - active_s,
        _read_bytes(spec, report.plan, source) / memory_byte_per_s,
        max(directions) * BITS_PER_BYTE / rate,
    )


def _covered_s(intervals: Sequence[tuple[float, float]]) -> float:
    """Seconds that intervals [start, end) cover together."""
    total_s, until_s = 0.0, -math.inf
    for start_s, end_s in sorted(intervals):
        total_s += max(0.0, end_s - max(start_s, until_s))
        until_s = max(until_s, end_s)
    return total_s


def _read_bytes(spec: RunSpec, plan: Plan, rank: int) -> int:
    """Bytes of the weights that a decode step reads on device `rank`: all but the table of embeddings."""
    return sum(weight_bytes(spec.model, piece) for piece in plan.held_by(rank) if piece.part != "embed")


def _cells(found: StepProfile) -> tuple[str, ...]:
    parts = (found.step_s, found.arithmetic_s, found.sending_s, found.waiting_s, found.rest_s)
    bounds = (None, found.arithmetic_bound_s, None, found.link_bound_s, None)
    return tuple(
        f"{part_s * 1e3:.1f}" + ("" if bound_s is None else f" ({bound_s * 1e3:.1f})")
        for part_s, bound_s in zip(parts, bounds, strict=True)
    )
