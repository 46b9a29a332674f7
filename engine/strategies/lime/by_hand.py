"""Plans of LIME made by hand: the ring with its layers, the segments, and what is streamed. Pure."""

from __future__ import annotations

from engine.domain.by_hand import DeviceShare, PlanByHand, StreamedPart
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.strategies.lime.allocation import LayerAllocation, Ring
from engine.strategies.lime.blocks import Streams, spare_bytes
from engine.strategies.lime.joint import member_of, streamings
from engine.strategies.lime.layout import SegmentsLayout
from engine.strategies.lime.placement import placed
from engine.strategies.lime.ring import Rings
from engine.strategies.lime.search import MOST_SEGMENTS, Choice
from engine.strategies.shared.by_hand import check_whole, workers_of

NAME = "lime"
HALVES: dict[frozenset[str], StreamedPart] = {
    frozenset({"attention", "ffn"}): "layer",
    frozenset({"attention"}): "attention",
    frozenset({"ffn"}): "ffn",
    frozenset(): "nothing",
}


def given(
    rings: Rings, cluster: ClusterSpec, plan: PlanByHand, fine_grained: bool, num_micro_batches: int
) -> Choice:
    """The plan's ring, layers and streams. Where a device's streams are not given, they are the fastest with
    which its layers fit; where the segments are not, those of the fastest step.

    Raises `PlanError` if the layers are not all that there are, or do not fit.
    """
    model = rings.model
    check_whole(NAME, model, plan.devices, "layers")
    shares = [share for share in plan.devices if share.layers]
    ranks = workers_of(NAME, cluster, [share.device for share in shares])
    if cluster.source_rank in ranks[1:]:
        raise PlanError(
            f"{NAME}: {cluster.source} is the source and has layers that are not the first: name it first."
        )
    ring = rings.of(ranks)
    fewest = min(share.layers for share in shares)
    counts = range(1, min(fewest, MOST_SEGMENTS) + 1) if plan.segments is None else (plan.segments,)
    refused = PlanError(
        f"{NAME}: segments is {plan.segments} in the plan made by hand, and a device has {fewest} layers: "
        f"choose 1 to {fewest}, so that every stage has one."
    )
    found: list[Choice] = []
    for number in (count for count in counts if 1 <= count <= fewest):
        try:
            streams = [
                _streams(ring, cluster, ranks, at, share, number, fine_grained)
                for at, share in enumerate(shares)
            ]
        except PlanError as error:
            refused = error
            continue
        slots = tuple(len(one) for one in streams)
        chosen = LayerAllocation(number, tuple(share.layers for share in shares), slots)
        found.append(Choice(ranks, ring, placed(ring, chosen, streams, num_micro_batches)))
    if not found:
        raise refused
    return min(found, key=lambda one: one.order)


def _streams(
    ring: Ring,
    cluster: ClusterSpec,
    ranks: tuple[int, ...],
    at: int,
    share: DeviceShare,
    num_segments: int,
    fine_grained: bool,
) -> tuple[Streams, ...]:
    """What the slots of device `at` of the ring stream. Raises `PlanError` if its layers do not fit."""
    device = cluster.devices[ranks[at]]
    lasting = ring.lasting if num_segments == 1 else ring
    if share.streams is None:
        table = streamings(member_of(lasting, at), ring.num_layers, num_segments, fine_grained)
        found = table[share.layers]
        if found is not None:
            return found.streams
    elif len(share.streams) <= share.layers // num_segments:
        chosen = LayerAllocation(num_segments, _at(ring, at, share.layers), ())
        if spare_bytes(lasting, chosen, at, share.streams) >= -_ROUNDING_BYTES:
            return share.streams
    else:
        raise PlanError(
            f"{NAME}: {device.name} streams {len(share.streams)} layers per stage in the plan made by hand, "
            f"and its smallest stage has {share.layers // num_segments}: give it fewer streams."
        )
    raise PlanError(
        f"{NAME}: {device.name} has no memory for {share.layers} layers in {num_segments} segments of the "
        "plan made by hand: give it fewer layers, more segments or more streams."
    )


_ROUNDING_BYTES = 1e-3


def _at(ring: Ring, device: int, layers: int) -> tuple[int, ...]:
    return tuple(layers if index == device else 0 for index in range(ring.size))


def of_segments(cluster: ClusterSpec, layout: SegmentsLayout) -> PlanByHand:
    """The ring with all layers of each device and what its slots stream."""
    shares = []
    for rank in layout.ranks:
        slots: list[set[str]] = [
            set() for _ in range(1 + max((b.position for b in layout.streamed[rank]), default=-1))
        ]
        for block in layout.streamed[rank]:
            slots[block.position].add(block.part)
        shares.append(
            DeviceShare(
                device=cluster.devices[rank].name,
                layers=layout.num_layers(rank),
                streams=tuple(HALVES[frozenset(parts)] for parts in slots),
            )
        )
    return PlanByHand(devices=tuple(shares), segments=layout.num_segments, prefill_chunk=layout.chunk_rows)
