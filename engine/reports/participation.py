"""What takes part in a run: whether one device computes all of it, which changes were of what takes no part,
and whether runs of several methods are one computation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from engine.domain.links import link_name, named_words
from engine.domain.report import RunReport
from engine.domain.scenario import Change, DeviceChange
from engine.reports.effects import in_words


def alone(report: RunReport) -> str:
    """The only worker that computes; "" if several do, or there is only one. A terminal, which may look up
    tokens and compute the head, is none that a plan chooses.
    """
    cluster = report.spec.cluster
    workers = {cluster.devices[rank].name for rank in cluster.workers}
    computing = [device.name for device in report.devices if device.flops and device.name in workers]
    return computing[0] if len(computing) == 1 and len(workers) > 1 else ""


def is_used(report: RunReport, change: Change) -> bool:
    """Whether what changes takes part: a link that carries something; a device that holds weights, computes,
    sends, or passes on.
    """
    carrying = [link for link in report.links if link.bytes]
    if not isinstance(change, DeviceChange):
        return any(change.link in _names(link.a, link.b, link.parallel) for link in carrying)
    rank = report.spec.cluster.rank(change.device)
    plan = report.plan
    ranks = (
        {work.device for work in plan.work} | {held.device for held in plan.holdings} if plan else set[int]()
    )
    return (
        rank in ranks
        or any(device.flops for device in report.devices if device.name == change.device)
        or any(change.device in (link.a, link.b) for link in carrying)
    )


def unfelt_text(report: RunReport) -> str:
    """What the changes of a finished run could not change, since it takes part in no plan; "" if nothing."""
    if report.outcome.kind != "finished" or report.plan is None:
        return ""
    replanned = {recovery.device for recovery in report.recoveries if recovery.replanned}
    by_place: dict[str, list[Change]] = {}
    for change in report.scenario.changes or report.spec.scenario.changes:
        if isinstance(change, DeviceChange):
            place, why = change.device, f"{change.device} takes part in no plan"
        else:
            place, why = change.link, f"{named_words(change.link)} carries nothing"
        if place not in replanned and not is_used(report, change):
            by_place.setdefault(why, []).append(change)
    return " ".join(
        f"{why}: {in_words(changes[0]) if len(changes) == 1 else 'what changes there'} changes nothing."
        for why, changes in by_place.items()
    )


def computation(devices: Sequence[str], figures: Iterable[float | None], peaks_bytes: Iterable[float]) -> str:
    """A digest by which runs on one cluster are one computation by several names: the same `devices` compute,
    and all predicted figures have the same six digits; peaks of memory, too, unless one device computes
    alone: methods cut its weights into other pieces, which is some kB more or less.
    """
    told = [*devices, *("" if one is None else f"{one:.6g}" for one in figures)]
    if len(devices) > 1:
        told += [f"{one:.6g}" for one in peaks_bytes]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]


def _names(a: str, b: str, parallel: int) -> tuple[str, str]:
    return link_name(a, b, parallel), link_name(b, a, parallel)
