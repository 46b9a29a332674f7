"""A drawn cluster with what was measured of its boards and their network in place of what was drawn. Pure.

The shape stays as drawn, since it says which pairs share a link. Only pairs are measured, so the links are
those that explain them best:

rate    of a direction of a link: the most that any pair got over it. If pairs share links as drawn, each pair
        is then exactly as fast as it was measured: a pair's rate is the least on its path.
delay   those whose sums over the paths are nearest to the pairs' (least squares; of several, the smallest)
loss    likewise, as small losses add up

Where messages are slowed down to what is drawn, a link has the lower of the two rates, and its drawn delay
with what of the pairs' delays is more than drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.links import Hop
from engine.domain.network import Actual, PairMeasurement
from engine.domain.report import PairReport
from engine.domain.scenario import Change, SetDelay, SetRate
from engine.domain.units import human, human_s

OF_THE_DRAWING = (
    *("name", "title", "role", "memory_bytes", "reserved_bytes", "disk", "node"),
    *("watts", "price_usd", "price_source", "j_per_memory_byte", "j_per_disk_byte"),
)
"""What a drawing says of a device that its board's calibration does not know better."""
MISFIT_FRAC, MISFIT_S = 0.1, 100e-6
"""By how much a pair's path may be off what was measured before it is said."""


def as_measured(cluster: ClusterSpec, actual: Actual) -> ClusterSpec:
    """`cluster` with the figures of `actual`. A link that no pair uses stays as it is drawn."""
    paths = [cluster.path(pair.src, pair.dst) for pair in actual.pairs]
    given = _given(cluster, actual)
    losses = _shared_out([pair.loss_frac for pair in actual.pairs], paths, list(given))
    most_loss = max((pair.loss_frac for pair in actual.pairs), default=0.0)  # a sum of small ones may be off
    update: dict[int, dict[str, Any]] = {}
    for hop, (rate, delay_s) in given.items():
        link = cluster.links[hop.link]
        if actual.slowed:
            rate, delay_s = min(rate, link.rate(hop.forward)), link.delay(hop.forward) + delay_s
        names = ("bit_per_s", "delay_s", "loss_frac")
        values = (rate, delay_s, min(losses[hop], most_loss))
        prefix = "" if hop.forward else "reverse_"
        update.setdefault(hop.link, {"jitter_s": 0.0}).update(
            {f"{prefix}{name}": value for name, value in zip(names, values, strict=True)}
        )
    links = tuple(link.model_copy(update=update.get(index, {})) for index, link in enumerate(cluster.links))
    devices = tuple(map(_calibrated, cluster.devices, actual.devices))
    return cluster.model_copy(update={"links": links, "devices": devices})


def _given(cluster: ClusterSpec, actual: Actual) -> dict[Hop, tuple[float, float]]:
    """Of each direction of a link that a pair uses: the rate that the network gives, and its delay; where
    messages are slowed down, what of that is more than drawn.
    """
    paths = [cluster.path(pair.src, pair.dst) for pair in actual.pairs]
    rates: dict[Hop, float] = {}
    sums_s = []
    for path, pair in zip(paths, actual.pairs, strict=True):
        rates |= {hop: max(pair.bit_per_s, rates.get(hop, 0.0)) for hop in path}
        drawn_s = cluster.delay_s(pair.src, pair.dst) if actual.slowed else 0.0
        sums_s.append(max(0.0, pair.delay_s - drawn_s))
    hops = sorted(rates, key=lambda hop: (hop.link, not hop.forward))
    delays = _shared_out(sums_s, paths, hops)
    return {hop: (rates[hop], delays[hop]) for hop in hops}


def changes_as_given(changes: Sequence[Change], cluster: ClusterSpec, actual: Actual) -> tuple[Change, ...]:
    """What becomes of changes of links: a rate is no more than the network gives, and a delay comes with what
    that adds.
    """
    given, found = _given(cluster, actual), list[Change]()
    for change in changes:
        if not isinstance(change, SetRate | SetDelay):
            found.append(change)
            continue
        link = cluster.link_index(change.link)
        for forward, direction in ((True, "forward"), (False, "backward")):
            if change.direction not in ("both", direction):
                continue
            rate, more_s = given.get(Hop(link=link, forward=forward), (math.inf, 0.0))
            update: dict[str, Any] = {"direction": direction}
            if isinstance(change, SetRate):
                update["bit_per_s"] = min(change.bit_per_s, rate)
            else:
                update["delay_s"] = change.delay_s + more_s
            found.append(change.model_copy(update=update))
    return tuple(found)


def _calibrated(drawn: DeviceSpec, row: DeviceSpec | None) -> DeviceSpec:
    if row is None:
        return drawn
    return row.model_copy(update={name: getattr(drawn, name) for name in OF_THE_DRAWING})


def _shared_out(
    sums: Sequence[float], paths: Sequence[Sequence[Hop]], hops: Sequence[Hop]
) -> dict[Hop, float]:
    """A figure of each of `hops`, at least 0, so that their sums over `paths` are nearest to `sums`."""
    if not hops:
        return {}
    crossed = np.array([[float(hop in path) for hop in hops] for path in paths])
    found, *_ = np.linalg.lstsq(crossed, np.array(sums), rcond=None)
    return dict(zip(hops, np.maximum(found, 0.0).tolist(), strict=True))


def as_used(drawn: ClusterSpec, actual: Actual) -> Actual:
    """What messages between each pair take: what the network gives, and no less than is drawn if `slowed`."""
    if not actual.slowed:
        return actual
    pairs = []
    for pair in actual.pairs:
        rate, delay_s, _ = _on_path(drawn, pair)
        slowed = pair._replace(bit_per_s=min(rate, pair.bit_per_s), delay_s=max(delay_s, pair.delay_s))
        pairs.append(slowed)
    return actual._replace(pairs=tuple(pairs))


def pairs_of(drawn: ClusterSpec, actual: Actual) -> tuple[PairReport, ...]:
    """Every pair, both ways: what its path is drawn to give beside what was measured."""
    found = []
    for pair, used in zip(actual.pairs, as_used(drawn, actual).pairs, strict=True):
        rate, delay_s, loss = _on_path(drawn, pair)
        found.append(
            PairReport(
                sender=drawn.devices[pair.src].name,
                receiver=drawn.devices[pair.dst].name,
                drawn_bit_per_s=rate,
                measured_bit_per_s=pair.bit_per_s,
                drawn_delay_s=delay_s,
                measured_delay_s=pair.delay_s,
                drawn_loss_frac=loss,
                measured_loss_frac=pair.loss_frac,
                used_bit_per_s=used.bit_per_s,
                used_delay_s=used.delay_s,
            )
        )
    return tuple(found)


def _on_path(cluster: ClusterSpec, pair: PairMeasurement) -> tuple[float, float, float]:
    """Rate, delay and loss of the links between the two."""
    links = [(cluster.links[hop.link], hop.forward) for hop in cluster.path(pair.src, pair.dst)]
    arrives = math.prod(1 - link.loss(way) for link, way in links)
    return min(link.rate(way) for link, way in links), cluster.delay_s(pair.src, pair.dst), 1 - arrives


def notes_on(measured: ClusterSpec, used: Actual) -> tuple[str, ...]:
    """What the prediction with measured figures cannot know of what was `used`, in sentences."""
    notes = []
    names = [device.name for device in measured.devices]
    drawn = [name for name, row in zip(names, used.devices, strict=True) if row is None]
    if drawn:
        notes.append(f"Not calibrated, so predicted as drawn: {', '.join(drawn)}.")
    worst = max(used.pairs, key=lambda pair: _misfit(measured, pair), default=None)
    if worst is not None and _misfit(measured, worst) > 1:
        rate, delay_s, _ = _on_path(measured, worst)
        notes.append(
            f"The drawing lets pairs share links that they do not share: from {names[worst.src]} to "
            f"{names[worst.dst]} the prediction has {human(rate, 'bit/s')} and {human_s(delay_s)}, the run "
            f"had {human(worst.bit_per_s, 'bit/s')} and {human_s(worst.delay_s)}."
        )
    return tuple(notes)


def _misfit(measured: ClusterSpec, pair: PairMeasurement) -> float:
    """How far the pair's path is off what was measured, over what it may be."""
    rate, delay_s, _ = _on_path(measured, pair)
    return max(
        abs(rate / pair.bit_per_s - 1) / MISFIT_FRAC,
        abs(delay_s - pair.delay_s) / max(MISFIT_S, MISFIT_FRAC * pair.delay_s),
    )
