"""Single changes of a cluster: which ones may matter, and the cluster after each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from engine.advice.values import Assessment
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec

Kind = Literal["rate", "delay", "memory", "speed", "fewer", "more"]
MAX_LINKS, MAX_DEVICES = 3, 3
"""How many links, and how many devices for one kind of change, are tried."""
EVERY_LINK = "every link"
ALMOST_FULL_FRAC = 0.5


class Candidate(NamedTuple):
    kind: Kind
    name: str
    words: str
    cluster: ClusterSpec


def candidates(cluster: ClusterSpec, rows: Sequence[Assessment]) -> tuple[Candidate, ...]:
    """Changes that may matter: of what limits some strategy, and of what lets a refused one in."""
    limits = [row.limit for row in rows if row.limit is not None]
    found = []
    links = _often([limit.name for limit in limits if limit.resource in ("link", "delay")])[:MAX_LINKS]
    for name in links:
        found.append(Candidate("rate", name, f"Twice the rate of {name}", with_link(cluster, name, 2.0, 1.0)))
        if cluster.links[cluster.link_index(name)].delay_s:
            words = f"Half the delay of {name}"
            found.append(Candidate("delay", name, words, with_link(cluster, name, 1.0, 0.5)))
    if links and len(cluster.links) > 1:
        faster = cluster
        for link in cluster.links:
            faster = with_link(faster, link.name, 2.0, 1.0)
        found.append(Candidate("rate", EVERY_LINK, f"Twice the rate of {EVERY_LINK}", faster))
    busy = _often([limit.name for limit in limits if limit.resource == "compute"])
    for name in _unlike(cluster, busy)[:MAX_DEVICES]:
        found.append(Candidate("speed", name, f"{name} twice as fast", _device(cluster, name, _faster)))
    for name in _unlike(cluster, _short_of_memory(cluster, rows))[:MAX_DEVICES]:
        found.append(
            Candidate("memory", name, f"Twice the memory on {name}", _device(cluster, name, _larger))
        )
    found += _fewer(cluster)
    found.append(_more(cluster))
    return tuple(found)


def _often(names: Sequence[str]) -> list[str]:
    """Each name once, the most frequent first."""
    return sorted(dict.fromkeys(names), key=lambda name: -names.count(name))


def _unlike(cluster: ClusterSpec, names: Sequence[str]) -> list[str]:
    """The first of several devices that differ only by name and hang on links alike."""
    found: dict[tuple[DeviceSpec, tuple[LinkSpec, ...], bool], str] = {}
    for name in names:
        device = cluster.devices[cluster.rank(name)].model_copy(update={"name": "x"})
        links = tuple(
            link.model_copy(update={"a": "x"} if link.a == name else {"b": "x"})
            for link in cluster.links
            if name in (link.a, link.b)
        )
        found.setdefault((device, links, name == cluster.source), name)
    return list(found.values())


def _short_of_memory(cluster: ClusterSpec, rows: Sequence[Assessment]) -> list[str]:
    """Workers that a refusal names as too small, then those that some plan fills most."""
    refusals = [row.reason for row in rows if row.total_s is None]
    named = [
        cluster.devices[rank].name
        for rank in cluster.workers
        if any(
            f"{cluster.devices[rank].name} {verb} " in text for text in refusals for verb in ("needs", "has")
        )
    ]
    full = [
        row.fullest
        for row in rows
        if row.peak_memory_frac is not None and row.peak_memory_frac > ALMOST_FULL_FRAC
    ]
    return list(dict.fromkeys([*named, *_often(full)]))


def with_link(cluster: ClusterSpec, name: str, rate: float, delay: float) -> ClusterSpec:
    index = cluster.link_index(name)
    old = cluster.links[index]
    new: LinkSpec = old.model_copy(
        update={
            "bit_per_s": old.bit_per_s * rate,
            "reverse_bit_per_s": None if old.reverse_bit_per_s is None else old.reverse_bit_per_s * rate,
            "delay_s": old.delay_s * delay,
            "reverse_delay_s": None if old.reverse_delay_s is None else old.reverse_delay_s * delay,
        }
    )
    links = (*cluster.links[:index], new, *cluster.links[index + 1 :])
    return _with(cluster, links=links)


def _device(cluster: ClusterSpec, name: str, change: Callable[[DeviceSpec], DeviceSpec]) -> ClusterSpec:
    devices = tuple(change(device) if device.name == name else device for device in cluster.devices)
    return _with(cluster, devices=devices)


def _faster(device: DeviceSpec) -> DeviceSpec:
    """`device` with twice the FLOP/s and memory bandwidth, and half the fixed costs."""
    return device.model_copy(
        update={
            "flop_per_s": 2 * device.flop_per_s,
            "memory_byte_per_s": 2 * device.memory_byte_per_s,
            "op_overhead_s": device.op_overhead_s / 2,
            "family_rates": tuple(
                row.model_copy(update={"flop_per_s": 2 * row.flop_per_s}) for row in device.family_rates
            ),
            "format_rates": tuple(
                row.model_copy(update={"flop_per_s": 2 * row.flop_per_s}) for row in device.format_rates
            ),
        }
    )


def _larger(device: DeviceSpec) -> DeviceSpec:
    return device.model_copy(update={"memory_bytes": 2 * device.memory_bytes})


def _fewer(cluster: ClusterSpec) -> list[Candidate]:
    """The cluster without one of the slowest workers, which then forwards packets and computes nothing."""
    source = cluster.source_rank
    workers = [rank for rank in cluster.workers if rank != source]
    if len(cluster.workers) < 2:
        return []
    slowest = sorted(workers, key=lambda rank: cluster.devices[rank].flop_per_s)
    names = _unlike(cluster, [cluster.devices[rank].name for rank in slowest])[:MAX_DEVICES]
    return [
        Candidate("fewer", name, f"Without {name}", cluster.without((cluster.rank(name),))) for name in names
    ]


def _more(cluster: ClusterSpec) -> Candidate:
    """One more device like the fastest worker, with links like its own."""
    model = max((cluster.devices[rank] for rank in cluster.workers), key=lambda device: device.flop_per_s)
    taken = {device.name for device in cluster.devices} | {switch.name for switch in cluster.switches}
    name = next(
        f"{model.name}-{number}" for number in range(2, 2000) if f"{model.name}-{number}" not in taken
    )
    links = [
        link.model_copy(update={"a": name} if link.a == model.name else {"b": name})
        for link in cluster.links
        if model.name in (link.a, link.b)
    ]
    if not links:  # a cluster of one device
        links = [LinkSpec(a=model.name, b=name, bit_per_s=1e9)]
    devices = (*cluster.devices, model.model_copy(update={"name": name}))
    changed = _with(cluster, devices=devices, links=(*cluster.links, *links))
    return Candidate("more", model.name, f"One more device like {model.name}", changed)


def _with(cluster: ClusterSpec, **fields: Any) -> ClusterSpec:
    """A copy that is validated anew: routes depend on rates, and a mere copy would keep the old routes."""
    return ClusterSpec(**{**{name: getattr(cluster, name) for name in ClusterSpec.model_fields}, **fields})
