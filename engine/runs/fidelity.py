"""The verdict on a real run: do its operations, links and latency agree with the models?

A paced run is valid if all of this holds:

pacing       few operations of this host ended late, and those not by much
model        operations took as long as the device model says, one after the other, on every device and in
             both phases, and all of the prediction's operations were done (`against_model.py`); both but for
             devices that compute so little, all together, that it changes no time (`operations.py`)
links        every measured link carries the rate that was asked for
latency      the run, its first token and every later one took as long as in its prediction, in which the
             same changes happen

A native run is not paced: its operations take what this host takes. Its links are judged, and it is compared
with its prediction for this host, part by part (`native.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from engine.domain.command_name import COMMAND
from engine.domain.network import LinkMeasurement
from engine.domain.report import Fidelity, RunReport
from engine.domain.scenario import DropDevice, FreezeDevice, JoinDevice, LinkDown, LinkUp, SetJitter, SetLoss
from engine.domain.units import human_s
from engine.reports.against_model import ModelComparison, Trace, compare_with_model, percentile_95
from engine.runs.calm_tokens import calm_tokens
from engine.runs.native import Simulated, native_parts
from engine.runs.on_nodes import played_by_server
from engine.runs.operations import (
    COMPARED_LEAST,
    Complaint,
    Lateness,
    model_complaints,
    negligible_notes,
    pacing_complaints,
    with_negligible_work,
)
from engine.worlds.real.dilation import enough_dilation_for_latency

LINK_LIMIT = 0.05
LATENCY_LIMIT = 0.1
RANDOM_LATENCY_LIMIT = 0.5
"""The limit for runs whose links lose packets, delay them at random or are measured meanwhile: one run of a
few hundred messages is up to 50 % off the mean that a prediction estimates (docs/results/fidelity.md).
"""

HALF = 0.5
"""The part of every limit that a rehearsal may use."""

CHANGE_GRACE_WALL_S = 0.1
"""Wall seconds by which a busy device may apply its new speed late."""


class Played(NamedTuple):
    """The measurements of a real run that the verdict needs; `backend` shaped its links, if `links` were
    measured.

    pacing: each device's `PacingStats` as a dict. live_rate_changes: rates that a person changed, each of
    which was measured over the link while the run went on.
    """

    trace: Trace
    pacing: Mapping[str, Mapping[str, Any]]
    links: Sequence[LinkMeasurement]
    backend: str
    live_rate_changes: int = 0


def fidelity_of(report: RunReport, played: Played, predicted: RunReport, predicted_trace: Trace) -> Fidelity:
    """The verdict on the run of `report`; `predicted` is the same run in the simulated world. A paced run
    that ended before its devices sent their pacing is never valid: None, if nothing is wrong.
    """
    fidelity = _links_judged(played)
    all_of_it = Lateness.of(played.pacing)
    grace_s = CHANGE_GRACE_WALL_S / report.dilation
    compared = compare_with_model(played.trace, predicted_trace, grace_s)
    idle = with_negligible_work(report, played.trace)
    limit, notes = latency_limit(report, played, predicted)
    latency_error = report.latency_s / predicted.latency_s - 1 if predicted.latency_s else None
    complaints = [
        *pacing_complaints(report.dilation, played.pacing, idle),
        *model_complaints(compared, _has_failures(report), report.dilation, idle),
        *_missing_complaints(report, predicted, compared),
        *_link_complaints(report, played.links),
        *_latency_complaints(report, played, predicted, limit),
    ]
    return fidelity.model_copy(
        update={
            "valid": None if not all_of_it.operations and not complaints else not complaints,
            "compute_error_mean": all_of_it.mean,
            "compute_error_p95": percentile_95(all_of_it.errors),
            "model_error_mean": compared.error_mean,
            "model_error_p95": compared.error_p95,
            "compared_frac": compared.compared / compared.operations if compared.operations else None,
            "latency_error": None if limit is None else latency_error,
            "latency_limit": limit,
            "late_frac": all_of_it.late_frac,
            "enough_dilation": max((one.enough_dilation or 0.0 for one in complaints), default=0.0) or None,
            "why": tuple(one.sentence(report.dilation) for one in complaints),
            "notes": (*notes, *negligible_notes(report, compared, idle)),
        }
    )


def needed_dilation(report: RunReport, played: Played, predicted: RunReport, trace: Trace) -> float:
    """The dilation at which all that this host was late in `report`, a rehearsal, is within half of what a
    run may be; 0: no larger one is needed.
    """
    limit, _ = latency_limit(report, played, predicted)
    compared = compare_with_model(played.trace, trace)
    idle = with_negligible_work(report, played.trace, HALF)
    complaints = [
        *pacing_complaints(report.dilation, played.pacing, idle, HALF),
        *model_complaints(compared, False, report.dilation, idle, HALF),
        *_latency_complaints(report, played, predicted, limit and HALF * limit),
    ]
    return max((one.enough_dilation or 0.0 for one in complaints), default=0.0)


def fidelity_of_native(report: RunReport, played: Played, on_host: Simulated | None) -> Fidelity:
    """The verdict on a run at native speed: its links make it valid or not, because nothing else is emulated.

    It stands beside its prediction for this host (None: the host is not calibrated), part by part.
    """
    why = tuple(one.sentence(report.dilation) for one in _link_complaints(report, played.links))
    fidelity = _links_judged(played).model_copy(update={"valid": not why, "why": why})
    if on_host is None:
        note = (
            "Native speed: not compared with a prediction, because this host is not calibrated: run "
            f"{COMMAND} calibrate before such a run."
        )
        return fidelity.model_copy(update={"notes": (note,)})
    predicted = on_host.report
    note = "Native speed: the operations and the runtime are compared with this host's calibration."
    caution = () if predicted.spec.profile is None else (predicted.spec.profile.caution,)
    return _part_by_part("Native speed", fidelity, report, played, on_host, (note, *filter(None, caution)))


def fidelity_on_nodes(report: RunReport, played: Played, predicted: Simulated | None) -> Fidelity:
    """The prediction beside what boards did. There is no verdict: what boards and their network give is what
    there is, whatever was drawn.
    """
    notes = _notes_on_played(report, played)
    fidelity = Fidelity(backend=played.backend, notes=notes)
    if report.recoveries:
        lost = ", ".join(recovery.device for recovery in report.recoveries)
        note = f"Boards: not compared with its prediction, which knows nothing of the loss of {lost}."
        return fidelity.model_copy(update={"notes": (note, *notes)})
    if predicted is None:
        return fidelity
    links = " where they give less than drawn" if report.spec.slows_links else ""
    note = (
        f"Boards: predicted is the drawn cluster with the links that were measured before the run{links}, "
        "and with what its boards have measured of themselves."
    )
    return _part_by_part("Boards", fidelity, report, played, predicted, (note, *notes))


def _notes_on_played(report: RunReport, played: Played) -> tuple[str, ...]:
    """Which devices were none but played by the server, and how punctual it was."""
    names = played_by_server(report.spec)
    if not names:
        return ()
    found = Lateness.of({name: stats for name, stats in played.pacing.items() if name in names})
    late = f", and ended {found.late_frac:.1%} of their {found.operations} operations late"
    return (f"No boards: the server played {', '.join(names)} as drawn{late if found.operations else ''}.",)


def _part_by_part(
    what: str,
    fidelity: Fidelity,
    report: RunReport,
    played: Played,
    expected: Simulated,
    notes: tuple[str, ...],
) -> Fidelity:
    predicted = expected.report
    for name, ended in (("run", report), ("prediction", predicted)):
        if ended.outcome.kind != "finished":
            how = f"the {name} {ended.outcome.in_words}"
            note = f"{what}: not compared with its prediction, because {how}."
            return fidelity.model_copy(update={"notes": (note, *fidelity.notes)})
    error = report.latency_s / predicted.latency_s - 1 if predicted.latency_s else None
    parts = native_parts(report, played.trace, expected)
    return fidelity.model_copy(update={"latency_error": error, "native": parts, "notes": notes})


def _links_judged(played: Played) -> Fidelity:
    link_error = max((abs(_link_error(m)) for m in played.links), default=None)
    return Fidelity(link_error_max=link_error, backend=played.backend)


def latency_limit(
    report: RunReport, played: Played, predicted: RunReport
) -> tuple[float | None, tuple[str, ...]]:
    """How far the latency may be from the prediction's (None: any distance), and the reasons in words."""
    for name, ended in (("run", report), ("prediction", predicted)):
        if ended.outcome.kind != "finished":
            return None, (f"The latency is not judged: the {name} {ended.outcome.in_words}.",)
    if _has_failures(report):
        sentence = (
            "The latency is not judged: how long failures take to find and mend depends on this host. Tokens "
            "before and after them are."
        )
        return None, (sentence,)
    notes = []
    if _has_random_links(report):
        notes.append("links lose packets or delay them at random")
    if played.live_rate_changes:
        notes.append("changed links were measured during the run")
    if notes:
        sentence = (
            f"The latency may be {RANDOM_LATENCY_LIMIT:.0%} off its prediction, and the times of tokens are "
            f"not judged{' after the change' if len(notes) == 1 and played.live_rate_changes else ''}: "
            f"{', and '.join(notes)}."
        )
        return RANDOM_LATENCY_LIMIT, (sentence,)
    if _is_unshaped(report, played):
        return LATENCY_LIMIT, ("The links are not shaped: a latency below the prediction counts as right.",)
    return LATENCY_LIMIT, ()


def _has_failures(report: RunReport) -> bool:
    """Whether a device or a link failed, or a device joined."""
    kinds = DropDevice | FreezeDevice | JoinDevice | LinkDown | LinkUp
    return bool(report.recoveries) or any(isinstance(change, kinds) for change in report.scenario.changes)


def _has_random_links(report: RunReport) -> bool:
    links = report.spec.cluster.links
    return any(link.loss(way) or link.jitter_s for link in links for way in (True, False)) or any(
        (isinstance(change, SetLoss) and change.loss_frac)
        or (isinstance(change, SetJitter) and change.jitter_s)
        for change in report.scenario.changes
    )


def _is_unshaped(report: RunReport, played: Played) -> bool:
    return bool(report.spec.cluster.links) and not played.links


def _link_error(measured: LinkMeasurement) -> float:
    return measured.achieved_bit_per_s / measured.asked_bit_per_s - 1


def _missing_complaints(
    report: RunReport, predicted: RunReport, compared: ModelComparison
) -> list[Complaint]:
    """What an undisturbed run did not do, or should not have been able to do. After a change, strategies may
    do other operations than in the prediction.
    """
    if report.outcome.kind != "finished" or _has_failures(report):
        return []
    if predicted.outcome.kind != "finished":
        complaint = Complaint(f"the run finished, but its prediction {predicted.outcome.in_words}")
        return [] if _has_random_links(report) else [complaint]
    if report.scenario.changes:
        return []
    return [
        Complaint(
            f"{device} did not do {missing:.1%} of the operations that the prediction has "
            f"(limit {1 - COMPARED_LEAST:.0%})"
        )
        for device, missing in sorted(compared.missing_frac.items())
        if missing > 1 - COMPARED_LEAST + 1e-9
    ]


def _link_complaints(report: RunReport, links: Sequence[LinkMeasurement]) -> list[Complaint]:
    worst = max(links, key=lambda measured: abs(_link_error(measured)), default=None)
    if worst is None or abs(_link_error(worst)) <= LINK_LIMIT:
        return []
    name, part = report.spec.cluster.links[worst.link].name, 1 + _link_error(worst)
    return [Complaint(f"link {name} carries {part:.1%} of the rate asked for (limit ±{LINK_LIMIT:.0%})")]


def _latency_complaints(
    report: RunReport, played: Played, predicted: RunReport, limit: float | None
) -> list[Complaint]:
    """Complaints about every time that the report prints large; in a run with failures or with links that
    were measured meanwhile, about the tokens that these did not disturb. Where links are random, of the whole
    run alone: a first token is few messages, whose times are further from their mean.
    """
    judged = [] if limit is None else [("the run", report.latency_s, predicted.latency_s, limit)]
    if limit is not None and limit <= LATENCY_LIMIT and predicted.tpot_s:
        judged += [
            ("the first token", report.ttft_s, predicted.ttft_s, limit),
            ("every later token", report.tpot_s, predicted.tpot_s, limit),
        ]
    elif report.outcome.kind == predicted.outcome.kind == "finished" and not _has_random_links(report):
        after = not played.live_rate_changes  # measuring a changed link goes on for a while
        judged += [(*calm, LATENCY_LIMIT) for calm in calm_tokens(report, predicted, after)]
    why = []
    for what, took_s, expected_s, most in judged:
        error = took_s / expected_s - 1 if expected_s else 0.0
        if abs(error) <= most or (error < 0 and _is_unshaped(report, played)):
            continue
        sentence = (
            f"{what} took {human_s(took_s)}, {error:+.1%} of the predicted {human_s(expected_s)} "
            f"(limit ±{most:.0%})"
        )
        enough = enough_dilation_for_latency(report.dilation, error, most) if error > 0 else None
        why.append(Complaint(sentence, enough))
    return why
