"""Predicts and emulates every showcase and the runs beside it, and sets their ratios beside the claims."""

from __future__ import annotations

import sys

from bench.tables.rows import Table
from emulator.session.client import emulate
from engine.domain.report import RunReport
from engine.domain.showcase import Claim, Showcase
from engine.domain.spec import RunSpec
from engine.domain.units import human_s
from engine.reports.showcase import longest_pause_s, verdicts
from engine.runs.showcase import Runs, predicted
from topologies.showcases import showcases

TITLE = (
    "The time of all requests and the longest wait between two tokens, predicted and emulated; then how "
    "many times as long as the showcase's own run the other takes, by the measure of the claim. A ratio in "
    "brackets is outside the claim. The showcase on 64 chips is predicted only."
)
COLUMNS = (
    "showcase",
    "run",
    "predicted",
    "emulated",
    "longest wait",
    "D",
    "proof",
    "measure",
    "claimed",
    "predicted",
    "emulated",
)


def measure_showcases() -> Table:
    """Check the claims of showcases."""
    rows: list[tuple[str, ...]] = []
    for showcase in showcases():
        sys.stderr.write(f"  {showcase.name}\n")
        expected = predicted(showcase)
        rows += rows_of(showcase, expected, _emulated(showcase, expected) if showcase.emulated else {})
    return Table(TITLE, COLUMNS, tuple(rows))


def _emulated(showcase: Showcase, expected: Runs) -> Runs:
    """What cannot be planned is not tried. The dilation is chosen automatically: that of a showcase is one at
    which it can be watched, and would take half an hour where a run beside it is much slower.
    """
    return {
        name: report and emulated_report(showcase.run_called(name).model_copy(update={"dilation": "auto"}))
        for name, report in expected.items()
    }


def emulated_report(spec: RunSpec) -> RunReport:
    return emulate(spec, lambda events: None)


def rows_of(showcase: Showcase, predicted: Runs, emulated: Runs) -> list[tuple[str, ...]]:
    """The showcase's own run, then one row per claim; `emulated` is empty if nothing was emulated."""
    rows = [(showcase.name, showcase.spec.strategy, *_times("", predicted, emulated), "", "", "", "")]
    judged = [
        verdicts(showcase, own, runs) if (own := runs.get("")) else () for runs in (predicted, emulated)
    ]
    for index, claim in enumerate(showcase.claims):
        ratios = [_ratio(found[index].ratio, found[index].holds) if found else "" for found in judged]
        rows.append(
            (
                "",
                claim.other,
                *_times(claim.other, predicted, emulated),
                claim.measure,
                _claimed(claim),
                *ratios,
            )
        )
    return rows


def _times(name: str, predicted: Runs, emulated: Runs) -> tuple[str, ...]:
    own, expected = emulated.get(name), predicted[name]
    if expected is None:
        return ("no plan", "", "", "", "")
    shown = own or expected
    return (
        human_s(expected.latency_s),
        human_s(own.latency_s) if own else "",
        human_s(longest_pause_s(shown)),
        f"{own.dilation:.3g}" if own else "",
        proof(own) if own else "",
    )


def proof(report: RunReport) -> str:
    """Whether the run finished, was correct and valid, in a few words."""
    if report.outcome.kind != "finished":
        return report.outcome.kind.replace("_", " ")
    correct, valid = report.correctness, report.fidelity.valid
    words = "lossy" if correct.lossy else "correct" if correct.ok else "wrong"
    return f"{words}, {'valid' if valid else 'not valid: ' + '; '.join(report.fidelity.why)}"


def _claimed(claim: Claim) -> str:
    if claim.at_least is None:
        return "no plan"
    if claim.at_most is None:
        return f"≥ {claim.at_least:g}"
    return f"{claim.at_least:g} to {claim.at_most:g}"


def _ratio(ratio: float | None, holds: bool) -> str:
    if ratio is None:
        return "no plan" if holds else "(no result)"
    return f"{ratio:.2f}" if holds else f"({ratio:.2f})"
