"""What limits a run: the device or link that takes most of the critical path's time, in a sentence. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from engine.advice.values import Limit, Resource
from engine.domain.cluster import ClusterSpec, Hop
from engine.domain.trace import Span
from engine.domain.units import human, human_s
from engine.reports.attribution import critical_path

OF_SPAN: dict[str, Resource] = {
    "compute": "compute",
    "load": "load",
    "store": "load",
    "stage": "staging",
}


def limit_of(cluster: ClusterSpec, spans: Iterable[Span], start_s: float, end_s: float) -> Limit:
    """The resource with the largest part of [start_s, end_s) on the way back from the source.

    The time of a message goes to the slowest link of its path: as delay, as far as the path's delays reach,
    else as rate.
    """
    times: dict[tuple[Resource, str], float] = defaultdict(float)
    for span, device, began_s, ended_s, staged_s in critical_path(
        spans, cluster, cluster.source, start_s, end_s
    ):
        took_s = ended_s - began_s - staged_s
        if staged_s:
            times["staging", device] += staged_s
        if span is None:
            times["wait", device] += took_s
        elif span.kind in ("recv", "send"):
            ends = (span.peer, span.device) if span.kind == "recv" else (span.device, span.peer)
            path = cluster.path(cluster.rank(ends[0]), cluster.rank(ends[1]))
            delays = {hop: cluster.links[hop.link].delay(hop.forward) for hop in path}
            delay_s = min(took_s, sum(delays.values())) if span.kind == "recv" else 0.0
            times["delay", _name(cluster, max(path, key=lambda hop: delays[hop]))] += delay_s
            times["link", _name(cluster, slowest(cluster, path))] += took_s - delay_s
        else:
            times[OF_SPAN[span.kind], device] += took_s
    if not times:
        return Limit(resource="wait", name=cluster.source, share_frac=1.0)
    (resource, name), most_s = max(times.items(), key=lambda item: item[1])
    return Limit(resource=resource, name=name, share_frac=most_s / (end_s - start_s))


def slowest(cluster: ClusterSpec, path: Sequence[Hop]) -> Hop:
    """The hop of a path with the lowest rate; of equal ones the first."""
    return min(path, key=lambda hop: cluster.links[hop.link].rate(hop.forward))


def _name(cluster: ClusterSpec, hop: Hop) -> str:
    return cluster.links[hop.link].name


def reason_for(cluster: ClusterSpec, limit: Limit, computing: Sequence[str]) -> str:
    """What limits a run, in one sentence; `computing` are the devices that compute anything."""
    share = f"{limit.share_frac:.0%} of the time"
    if limit.resource == "compute" and list(computing) == [limit.name]:
        return f"Computes on {limit.name} alone."
    if limit.resource in ("link", "delay"):
        link = cluster.links[cluster.link_index(limit.name)]
        if limit.resource == "delay":
            return f"Limited by the delay of {limit.name}, {human_s(link.delay_s)}: {share}."
        return f"Limited by the link {limit.name}, {human(link.bit_per_s, 'bit/s')}: {share}."
    if limit.resource == "load":
        device = cluster.devices[cluster.rank(limit.name)]
        rate, kind = human(device.disk_byte_per_s, "B/s"), f" ({device.disk})" if device.disk else ""
        return f"Limited by loading weights from the disk{kind} of {limit.name}, {rate}: {share}."
    words = {
        "compute": "computing on",
        "staging": "copies between accelerator and network on",
        "wait": "waiting on",
    }
    return f"Limited by {words[limit.resource]} {limit.name}: {share}."
